package commissions

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

// model is what one history must make of the books, kept in the plainest way.
type model struct {
	partners    map[uuid.UUID]*balances
	commissions map[uuid.UUID]*earnedOnce
	withdrawals map[uuid.UUID]*asked
	asked       []uuid.UUID             // the withdrawals, in their order
	uncovered   map[uuid.UUID]money.BRL // what was paid to a partner and covers no commission
	told        map[string]int          // how many events of each name
}

type earnedOnce struct {
	partner          uuid.UUID
	amount, reversed money.BRL
	status           string
	until            time.Time
}

func newModel() *model {
	return &model{
		partners: map[uuid.UUID]*balances{}, commissions: map[uuid.UUID]*earnedOnce{}, withdrawals: map[uuid.UUID]*asked{},
		uncovered: map[uuid.UUID]money.BRL{}, told: map[string]int{},
	}
}

func (m *model) partner(id uuid.UUID) *balances {
	if m.partners[id] == nil {
		m.partners[id] = &balances{}
	}
	return m.partners[id]
}

func (m *model) free(p *balances, amount money.BRL) {
	p.Available += amount
	back := min(p.Available, p.Debt)
	p.Available, p.Debt = p.Available-back, p.Debt-back
}

func (m *model) earn(told string, id, partner uuid.UUID, amount money.BRL, status string, until time.Time) {
	m.told[told]++
	m.commissions[id] = &earnedOnce{partner, amount, 0, status, until}
	if p := m.partner(partner); status == "pending" {
		p.Pending += amount
	} else {
		m.free(p, amount)
	}
}

func (m *model) reverse(id uuid.UUID, amount money.BRL) {
	c := m.commissions[id]
	p := m.partner(c.partner)
	if c.status == "pending" {
		p.Pending -= amount
	} else {
		there := min(p.Available, amount)
		p.Available, p.Debt = p.Available-there, p.Debt+amount-there
	}
	if c.status == "paid" {
		m.uncovered[c.partner] += amount
	}
	if amount > 0 {
		m.told[event.NameCommissionReversed]++
	}
	if c.reversed += amount; c.reversed == c.amount && amount > 0 {
		c.status = "reversed"
	}
}

func (m *model) release(now time.Time) {
	for _, c := range m.commissions {
		if c.status == "pending" && !c.until.After(now) {
			p := m.partner(c.partner)
			c.status = "available"
			m.told[event.NameCommissionReleased]++
			p.Pending -= c.amount - c.reversed
			m.free(p, c.amount-c.reversed)
		}
	}
}

// rows is the model as the tables show it.
func (m *model) rows() (rows []string) {
	for id, p := range m.partners {
		rows = append(rows, fmt.Sprintf("(%s,%d,%d,%d,%d,%d,%d)", id, p.Pending, p.Available, p.Reserved, p.Paid, p.Debt, m.uncovered[id]))
	}
	for id, c := range m.commissions {
		status := c.status
		if c.amount == 0 && status != "pending" {
			status = "worthless"
		}
		rows = append(rows, fmt.Sprintf("(%s,%d,%d,%s)", id, c.amount, c.reversed, status))
	}
	for id, w := range m.withdrawals {
		rows = append(rows, fmt.Sprintf("(%s,%d,%s)", id, w.amount, w.status))
	}
	return rows
}

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
	m.asked = append(m.asked, id)
	m.told[event.NameWithdrawalRequested]++
}

// move brings a withdrawal into a state that may follow on its own.
func (m *model) move(id uuid.UUID, to string) {
	w := m.withdrawals[id]
	p := m.partner(w.partner)
	m.told[event.NameWithdrawalStatusChanged]++
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
