package commissions

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

// asked is a withdrawal of the model.
type asked struct {
	partner uuid.UUID
	request withdrawalRequest
	amount  money.BRL
	status  string
}

// ask reserves the amount, which is there.
func (m *model) ask(id uuid.UUID, w *asked) {
	p := m.partner(w.partner)
	p.Available, p.Reserved = p.Available-w.amount, p.Reserved+w.amount
	m.withdrawals[id] = w
}

// move brings a withdrawal into a state that may follow on its own.
func (m *model) move(id uuid.UUID, to string) {
	w := m.withdrawals[id]
	p := m.partner(w.partner)
	switch w.status = to; to {
	case "paid":
		p.Reserved, p.Paid = p.Reserved-w.amount, p.Paid+w.amount
		m.uncovered[w.partner] += w.amount
	case "rejected", "cancelled", "failed":
		p.Reserved -= w.amount
		m.free(p, w.amount)
	}
}

// cover has what was paid be for commissions, the oldest first. All of a history are
// earned at one moment, so that the lower id is the older one.
func (m *model) cover() {
	blocked := map[uuid.UUID]bool{}
	for _, id := range sorted(m.commissions) {
		c := m.commissions[id]
		switch left := c.amount - c.reversed; {
		case c.status != "available" || blocked[c.partner]:
		case left <= m.uncovered[c.partner]:
			c.status = "paid"
			m.uncovered[c.partner] -= left
		default:
			blocked[c.partner] = true
		}
	}
}

func sorted[T any](rows map[uuid.UUID]T) []uuid.UUID {
	return slices.SortedFunc(maps.Keys(rows), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
}

// withdraw has some partner ask for some amount, or for what was asked for before.
func (s *shop) withdraw() error {
	if ids := sorted(s.model.withdrawals); len(ids) > 0 && s.random.IntN(4) == 0 {
		first := s.model.withdrawals[ids[s.random.IntN(len(ids))]]
		again := first.request
		again.Amount += money.BRL(s.random.IntN(2))
		return s.unchanged(func() error {
			_, fresh, err := s.ask(s.tenant, again)
			if fresh {
				return errors.New("a repeat has reserved something")
			}
			return err
		})
	}
	partner := newID()
	if known := sorted(s.model.partners); len(known) > 0 {
		partner = known[s.random.IntN(len(known))]
	}
	var there money.BRL
	books, known := s.model.partners[partner]
	if known {
		there = books.Available
	}
	amount := money.BRL(1 + s.random.IntN(int(there)*3/2+2))
	if s.random.IntN(3) == 0 && there > 0 {
		amount = there
	}
	r := ask(partner, amount)
	if amount > there {
		want := fault.Rule
		if !known {
			want = fault.NotFound
		}
		return s.unchanged(func() error {
			if _, _, err := s.ask(s.tenant, r); fault.KindOf(err) != want {
				return fmt.Errorf("asked for %s of %s: %w", amount, there, err)
			}
			return nil
		})
	}
	w, fresh, err := s.ask(s.tenant, r)
	if err != nil || !fresh {
		return fmt.Errorf("asked for %s of %s, fresh: %t: %w", amount, there, fresh, err)
	}
	s.model.ask(w.ID, &asked{partner, r, amount, "requested"})
	return nil
}

// follows are the states that may follow each, as the contract has it.
var follows = map[string][]string{"requested": {"approved", "rejected", "cancelled"}, "approved": {"paid", "failed"}}

// stepWithdrawal has a withdrawal go to any state, mostly one that may follow.
func (s *shop) stepWithdrawal() error {
	ids := sorted(s.model.withdrawals)
	if len(ids) == 0 {
		return nil
	}
	id := ids[s.random.IntN(len(ids))]
	from := s.model.withdrawals[id].status
	to := withdrawalStatuses[1+s.random.IntN(len(withdrawalStatuses)-1)]
	if next := follows[from]; len(next) > 0 && s.random.IntN(3) > 0 {
		to = next[s.random.IntN(len(next))]
	}
	if slices.Contains(follows[from], to) {
		if made := s.fixture.step(s.tenant, id, to); made.err != nil || made.repeated {
			return fmt.Errorf("from %s to %s, repeated: %t: %w", from, to, made.repeated, made.err)
		}
		s.model.move(id, to)
		return nil
	}
	return s.unchanged(func() error {
		made := s.fixture.step(s.tenant, id, to)
		if made.repeated != (from == to) || !made.repeated && fault.KindOf(made.err) != fault.Conflict {
			return fmt.Errorf("from %s to %s, repeated: %t: %w", from, to, made.repeated, made.err)
		}
		return nil
	})
}

// unchanged does what must leave everything as it is.
func (s *shop) unchanged(do func() error) error {
	before := s.rows()
	if err := do(); err != nil {
		return err
	}
	if !slices.Equal(before, s.rows()) {
		return errors.New("what changes nothing left a trace")
	}
	return nil
}
