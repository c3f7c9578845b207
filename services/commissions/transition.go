package commissions

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
)

// sources are the states out of which a withdrawal gets into each.
var sources = map[string]string{
	statusApproved: statusRequested, statusRejected: statusRequested, statusCancelled: statusRequested,
	statusPaid: statusApproved, statusFailed: statusApproved,
}

// circumstances are what is said of a change of state. Which of them may be said of
// which change, the document tells.
type circumstances struct {
	Reason      *string       `json:"reason"`
	FailureCode *string       `json:"failure_code"`
	EndToEndID  *string       `json:"end_to_end_id"`
	PaidAt      *openapi.Time `json:"paid_at"`
}

// check tells what a schema cannot: whether the end-to-end id names a moment.
func (c circumstances) check() error {
	if c.EndToEndID == nil {
		return nil
	}
	// E, the 8 digits of the bank, the minute in UTC, 11 characters of the bank's own.
	id := *c.EndToEndID
	if _, err := time.Parse("200601021504", id[min(9, len(id)):min(21, len(id))]); err != nil {
		return fault.InvalidBody(fault.Detail{Path: "/end_to_end_id", Code: "format", Message: "its characters 10 to 21 must be a date and time, as yyyyMMddHHmm"})
	}
	return nil
}

// transition is a change of state that is asked for, and what became of it.
type transition struct {
	circumstances
	id uuid.UUID
	to string

	withdrawal *withdrawal // as it is afterwards
	repeated   bool        // it was in that state already
	differing  []string    // members in which a repeat says something else
	err        error
}

// changeTo answers the POSTs that bring a withdrawal into that state.
func (s *Service) changeTo(status string) func(*web.Call) (web.Answer, error) {
	return func(call *web.Call) (web.Answer, error) {
		id, err := call.PathID("withdrawal_id")
		if err != nil {
			return web.Answer{}, err
		}
		t := transition{id: id, to: status}
		if err := call.Decode(&t.circumstances); err != nil {
			return web.Answer{}, err
		}
		if err := t.check(); err != nil {
			return web.Answer{}, err
		}
		if err := s.change(call.Context(), call.Tenant(), call.Key.ID, []*transition{&t}); err != nil {
			return web.Answer{}, err
		}
		if t.err != nil {
			return web.Answer{}, t.err
		}
		if err := s.show(call, t.withdrawal); err != nil {
			return web.Answer{}, err
		}
		return web.Answer{Status: http.StatusOK, Body: t.withdrawal, Header: mismatchHeader(t.differing)}, nil
	}
}

// change makes the transitions in one transaction, each of them standing alone: one that
// may not be made has an err, and hinders no other. All of a withdrawal's money moves, and
// its event is stored, with its state. An error is about all of them, and none is made.
func (s *Service) change(ctx context.Context, tenant uuid.UUID, keyID string, transitions []*transition) error {
	err := postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		known, err := lockPayments(ctx, tx, tenant, transitions)
		if err != nil {
			return err
		}
		subjects, books, err := s.lockSubjects(ctx, tx, tenant, transitions)
		if err != nil {
			return err
		}
		made := newSteps(len(transitions))
		var told []event.Sealed
		for _, t := range transitions {
			of, found := subjects[t.id]
			if !found {
				t.err = web.NotFound()
				continue
			}
			if t.withdrawal = of.withdrawal; t.decide(of.payee, known, books.now) {
				continue
			}
			known.note(t)
			changed, err := event.Seal(tenant, t.id.String()+"/"+t.to, books.now, t.apply(tenant, books), trace.Parent(ctx))
			if err != nil {
				return err
			}
			told = append(told, changed)
			made.append(t.withdrawal)
		}
		if len(told) > 0 {
			if err := s.keepChanges(ctx, tx, tenant, keyID, books, made, told); err != nil {
				return err
			}
		}
		return addHistories(ctx, tx, tenant, subjects.withdrawals())
	})
	if err != nil {
		return fmt.Errorf("change withdrawals: %w", err)
	}
	return nil
}

// decide tells whether there is nothing to do: the transition was made before, or may not
// be made; then err tells why.
func (t *transition) decide(who payee, known payments, now time.Time) (settled bool) {
	w := t.withdrawal
	switch {
	case w.Status == t.to:
		t.repeated, t.differing = true, t.differences()
	case w.Status != sources[t.to]:
		t.err = fault.Newf(fault.Conflict, "invalid_transition", "a withdrawal that is %s cannot become %s", w.Status, t.to)
	case who.banned() && (t.to == statusApproved || t.to == statusPaid):
		t.err = errBanned
	case t.PaidAt != nil && t.PaidAt.After(now.Add(maxAhead)):
		t.err = fault.New(fault.Rule, "rule_violated", "paid_at is more than 24 hours ahead")
	case known.taken(t):
		t.err = paymentTaken()
	default:
		return false
	}
	return true
}

// maxAhead is how far a bank's clock may be ahead of ours, time zones that were mixed up
// included.
const maxAhead = 24 * time.Hour

// differences names what a repeat says of the change otherwise than was said first. What
// it leaves out is no difference.
func (t *transition) differences() []string {
	w := t.withdrawal
	same := func(said, stored *string) bool { return said == nil || stored != nil && *said == *stored }
	return differing(
		compared{"end_to_end_id", same(t.EndToEndID, w.EndToEndID)},
		compared{"failure_code", same(t.FailureCode, w.FailureCode)},
		compared{"paid_at", t.PaidAt == nil || w.PaidAt != nil && event.Instant(t.PaidAt.Time).Equal(w.PaidAt.Time)},
		compared{"reason", same(t.Reason, w.Reason)},
	)
}

// apply changes the withdrawal and moves its money, and returns what is told of it.
func (t *transition) apply(tenant uuid.UUID, books *ledger) event.WithdrawalStatusChanged {
	w := t.withdrawal
	b := books.books[partnerKey{tenant, w.PartnerID}]
	previous := w.Status
	w.Status, w.Reason, w.FailureCode, w.EndToEndID = t.to, t.Reason, t.FailureCode, t.EndToEndID
	w.ChangedAt.Time = later(books.now, w.ChangedAt.Time)
	switch t.to {
	case statusApproved: // the money stays reserved
	case statusPaid:
		w.PaidAt = &openapi.Time{Time: books.now}
		if t.PaidAt != nil {
			w.PaidAt.Time = event.Instant(t.PaidAt.Time)
		}
		books.post(b, movedPayment, w.ID, uuid.Nil, reserved, paid, w.Amount)
		b.uncover(w.Amount)
	default:
		books.free(b, movedReturn, w.ID, uuid.Nil, reserved, w.Amount)
	}
	return event.WithdrawalStatusChanged{
		WithdrawalID: w.ID, PartnerID: w.PartnerID, Amount: w.Amount, KeyType: string(w.KeyType), KeyMasked: w.Key, Status: w.Status,
		RequestedAt: w.RequestedAt.Time, PreviousStatus: previous, Reason: w.Reason, FailureCode: w.FailureCode, EndToEndID: w.EndToEndID,
		ChangedAt: w.ChangedAt.Time,
	}
}

// keepChanges stores what has become of the withdrawals and of the books, covers
// commissions with what was paid, and tells of it.
func (s *Service) keepChanges(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID, keyID string, books *ledger, made *steps, told []event.Sealed) error {
	if err := books.cover(ctx, tx, max(1, coverMost/len(books.books))); err != nil {
		return err
	}
	books.keep(tx)
	if err := made.update(ctx, tx, tenant, keyID); err != nil {
		return err
	}
	s.relay.Add(tx, told...)
	return nil
}
