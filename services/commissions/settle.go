package commissions

import (
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/web"
)

// settlement is what a bank made of one withdrawal of a payout list.
type settlement struct {
	WithdrawalID uuid.UUID `json:"withdrawal_id"`
	Action       string    `json:"action"`
	circumstances
}

// actions are what a settlement may say, and the states they lead to.
var actions = map[string]string{"pay": statusPaid, "fail": statusFailed}

// check tells what a schema cannot: what is said must be about the action, as it would
// have to be in a call of its own.
func (s settlement) check() error {
	var details []fault.Detail
	unfit := func(member string, given bool) {
		if given {
			details = append(details, fault.Detail{Path: "/" + member, Code: "not_allowed", Message: "does not belong to this action"})
		}
	}
	switch s.Action {
	case "pay":
		unfit("failure_code", s.FailureCode != nil)
		unfit("reason", s.Reason != nil)
	case "fail":
		unfit("end_to_end_id", s.EndToEndID != nil)
		unfit("paid_at", s.PaidAt != nil)
		if s.Reason == nil {
			details = append(details, fault.Detail{Path: "/reason", Code: "required", Message: "is required where a payment failed"})
		}
	}
	if len(details) > 0 {
		return fault.InvalidBody(details...)
	}
	return s.circumstances.check()
}

// settled is the answer to one settlement, beside its status.
type settled struct {
	Withdrawal *withdrawal `json:"withdrawal"`
	Mismatch   []string    `json:"idempotency_mismatch,omitzero"`
}

// settleAtOnce is how many settlements share a transaction: their partners' books are
// locked until it ends.
const settleAtOnce = 250

// settleWithdrawals answers POST /api/v1/withdrawals/batch.
func (s *Service) settleWithdrawals(call *web.Call) (web.Answer, error) {
	sent, err := call.Elements()
	if err != nil {
		return web.Answer{}, err
	}
	all := make([]transition, len(sent))
	var valid []*transition
	for i := range sent {
		t := &all[i]
		var said settlement
		if t.err = sent[i].Decode(&said); t.err != nil {
			continue
		}
		if t.err = said.check(); t.err != nil {
			continue
		}
		t.id, t.to, t.circumstances = said.WithdrawalID, actions[said.Action], said.circumstances
		valid = append(valid, t)
	}
	if err := s.settle(call, valid); err != nil {
		return web.Answer{}, err
	}
	return call.Results(len(all), func(i int) (web.Answer, error) {
		t := &all[i]
		return web.Answer{Status: http.StatusOK, Body: settled{t.withdrawal, t.differing}}, t.err
	})
}

// settle makes the transitions, some of them in each transaction. Where the first
// transaction fails it returns why: then nothing was done, and the call can be repeated as
// a whole. A later one that fails, or one of which nothing can be shown any more, is the
// failure of its elements.
func (s *Service) settle(call *web.Call, transitions []*transition) error {
	done := 0
	for part := range slices.Chunk(transitions, settleAtOnce) {
		err := s.change(call.Context(), call.Tenant(), call.Key.ID, part)
		if err != nil && done == 0 {
			return err
		}
		if err == nil {
			err = s.showAll(call, part)
		}
		for _, t := range part {
			if err != nil {
				t.err = err
			}
		}
		done += len(part)
	}
	return nil
}

// showAll shows the withdrawals of the transitions, each of them once.
func (s *Service) showAll(call *web.Call, transitions []*transition) error {
	distinct := make(map[*withdrawal]bool)
	for _, t := range transitions {
		if t.withdrawal != nil {
			distinct[t.withdrawal] = true
		}
	}
	return s.show(call, slices.Collect(maps.Keys(distinct))...)
}
