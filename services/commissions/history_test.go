package commissions

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

var (
	histories = flag.Int("histories", 40, "how many random histories the books are put through")
	seed      = flag.Uint64("seed", 0, "of the random histories; 0: another one each time")
)

const day = 24 * time.Hour

// model is what the books of one tenant must be, kept in the plainest way.
type model struct {
	partners    map[uuid.UUID]*balances
	commissions map[uuid.UUID]*earnedOnce
	withdrawals map[uuid.UUID]*asked
	uncovered   map[uuid.UUID]money.BRL // what was paid to a partner and covers no commission
}

type earnedOnce struct {
	partner          uuid.UUID
	amount, reversed money.BRL
	status           string
	until            time.Time
}

func newModel() *model {
	return &model{map[uuid.UUID]*balances{}, map[uuid.UUID]*earnedOnce{}, map[uuid.UUID]*asked{}, map[uuid.UUID]money.BRL{}}
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

func (m *model) earn(id, partner uuid.UUID, amount money.BRL, status string, until time.Time) {
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
	if c.reversed += amount; c.reversed == c.amount && amount > 0 {
		c.status = "reversed"
	}
}

func (m *model) release(now time.Time) {
	for _, c := range m.commissions {
		if c.status == "pending" && !c.until.After(now) {
			p := m.partner(c.partner)
			c.status = "available"
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
	slices.Sort(rows)
	return rows
}

// shop is one tenant's history: what is still to happen, and what has.
type shop struct {
	*fixture
	random *rand.Rand
	tenant uuid.UUID
	model  *model
	coming []happening
	past   []happening
	end    time.Time // beyond every hold, and within what the outbox has partitions for
}

// happening is one event as it comes to the service, and what it does to the model.
type happening struct {
	deliver func() error
	expect  func()
	after   uuid.UUID // the commission that must be there first; Nil: none
	moves   bool      // it may not come a second time
}

// newShop makes up a tenant with some partners, among them one who gets half of all, and
// everything that is going to happen to them, in an order that no clock would give.
func newShop(f *fixture, random *rand.Rand) *shop {
	s := &shop{fixture: f, random: random, tenant: newID(), model: newModel(), end: f.now.Add(5 * day)}
	partners := []uuid.UUID{newID(), newID(), newID()}
	for range 4 + random.IntN(12) {
		partner := partners[max(0, random.IntN(2*len(partners))-len(partners))]
		switch random.IntN(6) {
		case 0:
			c := conversion(s.tenant, f.now, money.BRL(1+random.IntN(500)))
			c.Data.PartnerID = partner
			d := c.Data
			s.add(func() error { return handle(f, f.earnFromConversions, c) },
				func() { s.model.earn(*d.CommissionID, partner, *d.CommissionAmount, "available", f.now) }, uuid.Nil, true)
		case 1:
			g := goalReached(s.tenant, f.now, money.BRL(1+random.IntN(500)))
			g.Data.PartnerID = partner
			s.add(func() error { return handle(f, f.earnFromGoals, g) },
				func() { s.model.earn(bonusID(g.ID, g.CreatedAt), partner, *g.Data.Reward, "available", f.now) }, uuid.Nil, true)
		default:
			s.addSale(partner)
		}
	}
	random.Shuffle(len(s.coming), func(i, j int) { s.coming[i], s.coming[j] = s.coming[j], s.coming[i] })
	return s
}

func (s *shop) add(deliver func() error, expect func(), after uuid.UUID, moves bool) {
	s.coming = append(s.coming, happening{deliver, expect, after, moves})
}

// addSale adds a sale and, for most, refunds of some parts or of all of it.
func (s *shop) addSale(partner uuid.UUID) {
	amount := money.BRL(1 + s.random.IntN(20_000))
	pct := money.Pct(s.random.IntN(40_0000))
	commission := money.Percent(amount, pct)
	days := s.random.IntN(4)
	sold := sale(s.tenant, s.now, soldBy(partner), worth(amount, pct, commission), func(d *event.SaleRecorded) { d.HoldDays = days })
	id := sold.Data.CommissionID
	status, until := "available", s.now
	if days > 0 {
		status, until = "pending", s.now.Add(time.Duration(days)*day)
	}
	s.add(func() error { return handle(s.fixture, s.earnFromSales, sold) },
		func() { s.model.earn(id, partner, commission, status, until) }, uuid.Nil, true)
	var given money.BRL
	for range s.random.IntN(4) {
		part := min(amount-given, money.BRL(1+s.random.IntN(int(amount))))
		if part == 0 {
			break
		}
		share := money.Share(commission, given+part, amount) - money.Share(commission, given, amount)
		given += part
		refund := refundOf(sold, share)
		s.add(func() error { return handle(s.fixture, s.reverse, refund) },
			func() { s.model.reverse(id, share) }, id, share > 0)
	}
}

// step has one thing happen, and says what.
func (s *shop) step() (what string, err error) {
	switch choice := s.random.IntN(16); {
	case choice >= 13:
		return "a withdrawal", s.withdraw()
	case choice >= 10:
		return "a step of a withdrawal", s.stepWithdrawal()
	case choice == 0:
		s.now = s.now.Add(min(time.Duration(s.random.IntN(36))*time.Hour, s.end.Sub(s.now)))
		for s.mustRelease() == releaseBatch {
		}
		s.model.release(s.now)
		return "a release", nil
	case choice < 3 && len(s.past) > 0:
		return "a repeat", s.repeat(s.past[s.random.IntN(len(s.past))])
	case len(s.coming) == 0:
		return "nothing", nil
	}
	next := s.coming[0]
	s.coming = s.coming[1:]
	if next.after != uuid.Nil && s.model.commissions[next.after] == nil {
		s.coming = append(s.coming, next)
		return "a refund before its sale", s.refused(next, fault.NotYet)
	}
	if err := next.deliver(); err != nil {
		return "an event", err
	}
	next.expect()
	s.past = append(s.past, next)
	return "an event", nil
}

// repeat delivers an event again which no receipt has kept away.
func (s *shop) repeat(h happening) error {
	if !h.moves {
		return h.deliver()
	}
	return s.refused(h, fault.Conflict)
}

// refused delivers what must be refused and leave everything as it is.
func (s *shop) refused(h happening, want fault.Kind) error {
	before := s.rows()
	if err := h.deliver(); fault.KindOf(err) != want {
		return fmt.Errorf("refused as %v, want kind %d", err, want)
	}
	if after := s.rows(); !slices.Equal(before, after) {
		return errors.New("what was refused left a trace")
	}
	return nil
}

// rows is the tenant's whole state.
func (s *shop) rows() (rows []string) {
	for _, table := range []string{"accounts", "transfers", "commissions", "holds", "withdrawals", "withdrawal_states", "outbox"} {
		rows = append(rows, s.dump(fmt.Sprintf(`select * from %s where tenant_id = '%s'`, table, s.tenant))...)
	}
	return rows
}

// check compares the books with the model, and holds every rule against them.
func (s *shop) check() error {
	got := slices.Concat(
		s.dump(fmt.Sprintf(`select partner_id, %s, uncovered_centavos from accounts where tenant_id = '%s'`, balanceColumns, s.tenant)),
		s.dump(fmt.Sprintf(`select commission_id, commission_amount_centavos, reversed_centavos,
			case when commission_amount_centavos = 0 and status <> 'pending' then 'worthless' else status end from commissions where tenant_id = '%s'`, s.tenant)),
		s.dump(fmt.Sprintf(`select withdrawal_id, amount_centavos, status from withdrawals where tenant_id = '%s'`, s.tenant)))
	slices.Sort(got)
	if want := s.model.rows(); !slices.Equal(got, want) {
		return fmt.Errorf("the books are\n%s\nand must be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	found, err := s.verify(s.t.Context(), s.tenant)
	if err != nil {
		return err
	}
	for _, c := range found.Checks {
		if !c.OK {
			return fmt.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	return nil
}

func TestTheBooksHoldThroughEveryHistory(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	f := prepare(t, nowhere).wire()
	start := f.now
	for i := range *histories {
		f.now = start
		random := rand.New(rand.NewPCG(*seed, uint64(i)))
		s := newShop(f, random)
		for steps := 0; len(s.coming) > 0; steps++ {
			what, err := s.step()
			s.covered()
			s.model.cover()
			if err == nil {
				err = s.check()
			}
			if err != nil {
				t.Fatalf("history %d of -seed %d: after %d steps, at %s: %v", i, *seed, steps, what, err)
			}
		}
		f.now = s.end
		for f.mustRelease() == releaseBatch {
		}
		s.model.release(f.now)
		s.covered()
		s.model.cover()
		if err := s.check(); err != nil {
			t.Fatalf("history %d of -seed %d: in the end: %v", i, *seed, err)
		}
		if left := f.dump(fmt.Sprintf(`select * from holds where tenant_id = '%s'`, s.tenant)); len(left) != 0 {
			t.Fatalf("history %d of -seed %d: %v is held for ever", i, *seed, left)
		}
	}
}

// The same events one by one in one order, and in batches in another, must leave the
// same balances.
func TestTheSplitIntoBatchesAndTheOrderDecideNothing(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	var events []event.Event[event.SaleRecorded]
	var refunds []event.Event[event.SaleRefunded]
	partners := []uuid.UUID{newID(), newID(), newID()}
	for i := range 60 {
		sold := sale(newID(), f.now, soldBy(partners[i%3]), func(d *event.SaleRecorded) { d.HoldDays = i % 2 })
		events = append(events, sold)
		for _, part := range []money.BRL{10_00, 20_00, 2_42}[:i%4] {
			refunds = append(refunds, refundOf(sold, part))
		}
	}
	var outcomes []map[string][]string
	for _, batch := range []int{1, 7, 500} {
		tenant := newID()
		f.now = f.now.Add(time.Second) // events of other tenants with the same causes are told at another time
		for i := range events {
			events[i].TenantID = tenant
		}
		for i := range refunds {
			refunds[i].TenantID = tenant
		}
		rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		rand.Shuffle(len(refunds), func(i, j int) { refunds[i], refunds[j] = refunds[j], refunds[i] })
		for chunk := range slices.Chunk(events, batch) {
			f.mustEarn(chunk...)
		}
		for chunk := range slices.Chunk(refunds, batch) {
			f.mustReverse(chunk...)
		}
		f.balanced(tenant)
		outcomes = append(outcomes, map[string][]string{
			"balances":    f.dump(fmt.Sprintf(`select partner_id, %s from accounts where tenant_id = '%s'`, balanceColumns, tenant)),
			"commissions": f.dump(fmt.Sprintf(`select commission_id, reversed_centavos, status from commissions where tenant_id = '%s'`, tenant)),
		})
	}
	for _, other := range outcomes[1:] {
		same(t, outcomes[0], other)
	}
}
