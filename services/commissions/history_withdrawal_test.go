package commissions

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

// withdraw has partners of some histories ask for some amount, or for what was asked for
// before. Those who are eager do so each time.
func (c *crowd) withdraw() error {
	for _, s := range c.shops {
		if s.eager || c.random.IntN(10) == 0 {
			if err := c.withdrawOf(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *crowd) withdrawOf(s *shop) error {
	if asked := s.model.asked; len(asked) > 0 && c.random.IntN(4) == 0 {
		again := s.model.withdrawals[asked[c.random.IntN(len(asked))]].request
		again.Amount += money.BRL(c.random.IntN(2))
		return c.sampled(16, func() error {
			_, fresh, err := c.ask(s.tenant, again)
			if fresh {
				return errors.New("a repeat has reserved something")
			}
			return err
		}, s.tenant)
	}
	partner, there, known := uuid.Nil, money.BRL(0), sorted(s.model.partners)
	if len(known) > 0 {
		partner = known[c.random.IntN(len(known))]
		there = s.model.partners[partner].Available
	}
	amount := money.BRL(1 + c.random.IntN(int(there)*3/2+2))
	if c.random.IntN(3) == 0 && there > 0 {
		amount = there
	}
	r := ask(partner, amount)
	if amount > there {
		want := fault.Rule
		if len(known) == 0 {
			want = fault.NotFound
		}
		return c.sampled(16, func() error {
			if _, _, err := c.ask(s.tenant, r); fault.KindOf(err) != want {
				return fmt.Errorf("asked for %s of %s: %w", amount, there, err)
			}
			return nil
		}, s.tenant)
	}
	w, fresh, err := c.ask(s.tenant, r)
	if err != nil || !fresh {
		return fmt.Errorf("asked for %s of %s, fresh: %t: %w", amount, there, fresh, err)
	}
	s.model.ask(w.ID, &asked{partner, r, amount, "requested"})
	return nil
}

// follows are the states that may follow each, as the contract has it.
var follows = map[string][]string{"requested": {"approved", "rejected", "cancelled"}, "approved": {"paid", "failed"}}

// expected is a step of a withdrawal and what must become of it.
type expected struct {
	*transition
	from     string
	repeated bool
	refused  string // the code; "" for none
}

func (e expected) check() error {
	code := ""
	if e.err != nil {
		if fault.Of(e.err) == nil {
			return e.err
		}
		code = fault.Of(e.err).Code
	}
	if code != e.refused || e.transition.repeated != e.repeated {
		return fmt.Errorf("from %s to %s: %q, repeated: %t; want %q, %t", e.from, e.to, code, e.transition.repeated, e.refused, e.repeated)
	}
	return nil
}

// settle has withdrawals of about half of the histories go to any state, mostly one that
// may follow: those of a tenant in one call, in which each stands alone.
func (c *crowd) settle() error {
	calls := map[uuid.UUID][]expected{}
	for _, s := range c.some(2) {
		if len(s.model.asked) > 0 {
			calls[s.tenant] = append(calls[s.tenant], c.settleOf(s))
		}
	}
	for tenant, steps := range calls {
		transitions := make([]*transition, len(steps))
		changing := false
		for i, e := range steps {
			transitions[i] = e.transition
			changing = changing || e.refused == "" && !e.repeated
		}
		do := func() error { return c.change(c.t.Context(), tenant, operatorKey, transitions) }
		err := error(nil)
		if changing {
			err = do()
		} else {
			err = c.sampled(2, do, tenant)
		}
		if err != nil {
			return err
		}
		for _, e := range steps {
			if err := e.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleOf takes one step of a withdrawal in the model, and tells it.
func (c *crowd) settleOf(s *shop) expected {
	id := s.model.asked[c.random.IntN(len(s.model.asked))]
	from := s.model.withdrawals[id].status
	to := withdrawalStatuses[1+c.random.IntN(len(withdrawalStatuses)-1)]
	if next := follows[from]; len(next) > 0 && c.random.IntN(3) > 0 {
		to = next[c.random.IntN(len(next))]
	}
	e := expected{transition: stepTo(id, to), from: from, repeated: from == to}
	if !e.repeated && !slices.Contains(follows[from], to) {
		e.refused = "invalid_transition"
	}
	if to == "paid" && c.random.IntN(2) == 0 {
		c.name(s.tenant, &e)
	}
	if !e.repeated && e.refused == "" {
		s.model.move(id, to)
	}
	return e
}

// name names the payment: by an id of its own, or now and then by another withdrawal's.
func (c *crowd) name(tenant uuid.UUID, e *expected) {
	if paid := c.paid[tenant]; len(paid) > 0 && c.random.IntN(4) == 0 {
		e.EndToEndID = &paid[c.random.IntN(len(paid))]
		if e.refused == "" && !e.repeated {
			e.refused = "conflict"
		}
		return
	}
	id := fmt.Sprintf("E12345678202607141305%011d", c.random.IntN(100_000_000_000))
	e.EndToEndID = &id
	if e.refused == "" && !e.repeated {
		c.paid[tenant] = append(c.paid[tenant], id)
	}
}
