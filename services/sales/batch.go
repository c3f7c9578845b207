package sales

import (
	"context"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/web"
)

// element is one report of a batch, and what became of it.
type element struct {
	report
	known sale // recorded by this element, or before
	fresh bool // by this element
	err   error

	decision decision[sale]
	entry    *entry // decided and not yet committed
}

// batchReceipt is a receipt among others, which has no header of its own.
type batchReceipt struct {
	receipt  `json:",embed"`
	Mismatch []string `json:"idempotency_mismatch,omitzero"`
}

// recordSales answers POST /api/v1/sales/batch. There is room for all of the batch in the
// recorder before any of it is recorded, so that it is never refused by half.
func (s *Service) recordSales(call *web.Call) (web.Answer, error) {
	sent, err := call.Elements()
	if err != nil {
		return web.Answer{}, err
	}
	elements := make([]element, len(sent))
	var valid []*element
	for i := range elements {
		e := &elements[i]
		if e.err = sent[i].Decode(&e.report); e.err == nil {
			valid = append(valid, e)
		}
	}
	release, err := s.recorder.reserve(call.Context(), len(valid))
	if err != nil {
		for range elements {
			countReport(call, kindSale, web.Answer{}, err)
		}
		return web.Answer{}, err
	}
	defer release()
	s.recordInOrder(call.Context(), call.Credential, call.Tenant(), valid)
	return call.Results(len(elements), func(i int) (web.Answer, error) {
		answer, err := elements[i].answer()
		countReport(call, kindSale, answer, err)
		return answer, err
	})
}

// answer is what the report would have been answered as a call of its own.
func (e *element) answer() (web.Answer, error) {
	answer := batchReceipt{receipt: receipt{e.known.SaleID, e.known.CommissionID, e.known.CommissionAmount, !e.fresh}}
	switch {
	case e.err != nil:
		return web.Answer{}, e.err
	case e.fresh:
		return web.Answer{Status: 201, Body: answer}, nil
	}
	answer.Mismatch = e.known.differences(e.report)
	return web.Answer{Status: 200, Body: answer}, nil
}

// recordInOrder records the reports so that of those with one external_ref the first
// that can be recorded is, and the later ones are its repeats.
func (s *Service) recordInOrder(ctx context.Context, credential auth.Credential, tenant uuid.UUID, open []*element) {
	for len(open) > 0 {
		firsts := make(map[string]*element, len(open))
		var round, later []*element
		for _, e := range open {
			if firsts[e.ExternalRef] == nil {
				firsts[e.ExternalRef] = e
				round = append(round, e)
			} else {
				later = append(later, e)
			}
		}
		s.recordRound(ctx, credential, tenant, round)
		open = nil
		for _, e := range later {
			switch first := firsts[e.ExternalRef]; {
			case first.err == nil:
				e.known = first.known
			case fault.KindOf(first.err) == fault.Unavailable: // nobody knows whether it was recorded
				e.err = first.err
			default: // a sale that is refused leaves its external_ref to the next
				open = append(open, e)
			}
		}
	}
}

// decideAtOnce bounds how many connections a batch takes to look at the catalogue.
const decideAtOnce = 4

// recordRound records reports of different sales together. What was decided on an old
// catalogue is decided anew, as in decide.
func (s *Service) recordRound(ctx context.Context, credential auth.Credential, tenant uuid.UUID, open []*element) {
	for _, e := range open {
		e.decision = s.saleDecision(&credential, tenant, e.report)
	}
	for len(open) > 0 {
		var deciding errgroup.Group
		deciding.SetLimit(decideAtOnce)
		for _, e := range open {
			deciding.Go(func() error {
				e.decide(ctx, s)
				return nil // an element fails by itself
			})
		}
		deciding.Wait()
		open = s.commitRound(ctx, tenant, open)
	}
}

// decide makes the entry that records the element's report, unless it is refused or was
// recorded before.
func (e *element) decide(ctx context.Context, s *Service) {
	e.entry = nil
	e.decision.begin()
	terms, version, earlier, err := agree(ctx, s, e.decision)
	switch {
	case err != nil:
		e.err = err
	case earlier != nil:
		e.known = *earlier
	default:
		e.entry, e.err = newEntry(ctx, e.decision.tenant, version, e.report, terms, e.decision.now)
	}
}

// commitRound commits what was decided and returns what must be decided anew.
func (s *Service) commitRound(ctx context.Context, tenant uuid.UUID, round []*element) (outdated []*element) {
	var decided []*element
	var entries []*entry
	for _, e := range round {
		if e.entry != nil {
			decided, entries = append(decided, e), append(entries, e.entry)
		}
	}
	for i, o := range s.recorder.submitAll(ctx, entries) {
		switch e := decided[i]; {
		case o.err != nil:
			e.err = o.err
		case o.recorded:
			e.known, e.fresh = e.entry.sale, true
		case o.known != nil:
			e.known = *o.known
		default:
			s.catalogue.outdated(tenant, e.entry.version)
			outdated = append(outdated, e)
		}
	}
	return outdated
}
