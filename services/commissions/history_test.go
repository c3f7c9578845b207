package commissions

import (
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

const day = 24 * time.Hour

// shop is one history: some partners of a tenant, what is still to happen to them, and
// what has.
type shop struct {
	random *source
	tenant uuid.UUID
	now    time.Time // when all of it was recorded
	model  *model
	coming []happening
	past   []happening
	eager  bool // to withdraw
}

// source is where a history comes from: of one seed, always the same.
type source struct {
	*rand.Rand
	bytes *rand.ChaCha8
}

func newSource(seed, stream uint64) *source {
	var key [32]byte
	for i := range 8 {
		key[i], key[8+i] = byte(seed>>(8*i)), byte(stream>>(8*i))
	}
	bytes := rand.NewChaCha8(key)
	return &source{rand.New(bytes), bytes}
}

// id draws an id. Among those of the histories it decides which of two commissions that
// were earned at one moment counts as the older one.
func (s *source) id() uuid.UUID { return uuid.Must(uuid.NewRandomFromReader(s.bytes)) }

// happening is one event as it comes to the service, and what it does to the model.
type happening struct {
	*shop
	event  any // an event.Event of one of the kinds that move money
	expect func()
	after  uuid.UUID // the commission that must be there first; Nil: none
	moves  bool      // it may not come a second time
}

// newShop makes up some partners of a tenant, among them one who gets half of all, and
// everything that is going to happen to them, in an order that no clock would give.
func newShop(random *source, tenant uuid.UUID, now time.Time) *shop {
	s := &shop{random: random, tenant: tenant, now: now, model: newModel(), eager: random.IntN(5) == 0}
	partners := []uuid.UUID{random.id(), random.id(), random.id()}
	for range 1 + random.IntN(9) {
		partner := partners[max(0, random.IntN(2*len(partners))-len(partners))]
		switch random.IntN(6) {
		case 0:
			s.addConversion(partner)
		case 1:
			s.addBonus(partner)
		default:
			s.addSale(partner)
		}
	}
	random.Shuffle(len(s.coming), func(i, j int) { s.coming[i], s.coming[j] = s.coming[j], s.coming[i] })
	return s
}

func (s *shop) addConversion(partner uuid.UUID) {
	amount := money.BRL(1 + s.random.IntN(500))
	c := conversion(s.tenant, s.now, amount)
	c.Data.PartnerID, c.Data.CommissionID = partner, new(s.random.id())
	s.coming = append(s.coming, happening{shop: s, event: c, moves: true, expect: func() {
		s.model.earn(event.NameCommissionAvailable, *c.Data.CommissionID, partner, amount, "available", s.now)
	}})
}

func (s *shop) addBonus(partner uuid.UUID) {
	amount := money.BRL(1 + s.random.IntN(500))
	g := goalReached(s.tenant, s.now, amount)
	g.Data.PartnerID, g.Data.GoalID = partner, s.random.id()
	g.ID = event.IDOf(g.Name, g.Data.GoalID.String())
	s.coming = append(s.coming, happening{shop: s, event: g, moves: true, expect: func() {
		s.model.earn(event.NameCommissionBonus, bonusID(g.ID, g.CreatedAt), partner, amount, "available", s.now)
	}})
}

// addSale adds a sale and, for most, refunds of some parts or of all of it.
func (s *shop) addSale(partner uuid.UUID) {
	amount := money.BRL(1 + s.random.IntN(20_000))
	pct := money.Pct(s.random.IntN(40_0000))
	commission := money.Percent(amount, pct)
	id, days := s.random.id(), s.random.IntN(4)
	sold := sale(s.tenant, s.now, soldBy(partner), worth(amount, pct, commission),
		func(d *event.SaleRecorded) { d.CommissionID, d.HoldDays = id, days })
	status, until := "available", s.now
	if days > 0 {
		status, until = "pending", s.now.Add(time.Duration(days)*day)
	}
	s.coming = append(s.coming, happening{shop: s, event: sold, moves: true, expect: func() {
		s.model.earn(event.NameCommissionAvailable, id, partner, commission, status, until)
	}})
	var given money.BRL
	for range s.random.IntN(4) {
		part := min(amount-given, money.BRL(1+s.random.IntN(int(amount))))
		if part == 0 {
			break
		}
		share := money.Share(commission, given+part, amount) - money.Share(commission, given, amount)
		given += part
		s.coming = append(s.coming, happening{
			shop: s, event: refundOf(sold, share), after: id, moves: share > 0,
			expect: func() { s.model.reverse(id, share) },
		})
	}
}

// next takes some of what is coming, in its order.
func (s *shop) next(most int) []happening {
	n := min(most, len(s.coming))
	taken := s.coming[:n:n]
	s.coming = s.coming[n:]
	return taken
}

// happened notes that the event was handled.
func (h happening) happened() {
	h.expect()
	h.past = append(h.past, h)
}

// early tells whether it is a refund that has overtaken its sale.
func (h happening) early() bool {
	return h.after != uuid.Nil && h.model.commissions[h.after] == nil
}
