package commissions

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

func TestAGoalWithARewardEarnsABonusAtOnce(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	g := goalReached(tenant, f.now.Add(-time.Minute), 250_00)
	g.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if err := handle(f, f.earnFromGoals, g); err != nil {
		t.Fatal(err)
	}
	told := only[event.CommissionBonus](f)
	got, err := f.commission(t.Context(), tenant, told.Data.CommissionID)
	if err != nil {
		t.Fatal(err)
	}
	if got.PartnerID != g.Data.PartnerID || got.Kind != "bonus" || *got.SourceGoalID != g.Data.GoalID || got.SourceSaleID != nil || got.SourceConversionID != nil ||
		got.CampaignID != nil || got.PlanID != nil || got.BaseAmount != nil || got.Pct != nil || got.Amount != 250_00 || got.Status != "available" ||
		!got.AvailableAt.Equal(g.CreatedAt) || !got.CreatedAt.Equal(g.CreatedAt) {
		t.Errorf("commission %+v", got)
	}
	d := told.Data
	if told.ID != event.IDOf("commission.bonus", got.ID.String()) || d.PartnerID != g.Data.PartnerID || d.Amount != 250_00 || d.SourceGoalID != g.Data.GoalID ||
		!d.CreatedAt.Equal(g.CreatedAt) || told.Traceparent != g.Traceparent {
		t.Errorf("told %+v", told)
	}
	if got := f.books(tenant, d.PartnerID); got != (balances{Available: 250_00}) {
		t.Errorf("balances %+v", got)
	}
	if told := f.dump(`select 1 from outbox where name = 'commission.available'`); len(told) != 0 {
		t.Error("a bonus is told as an available commission as well")
	}
	f.balanced(tenant)
}

func TestTheIDOfABonusFollowsFromItsEvent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 14, 23, 59, 58, 120_999_000, time.UTC)
	one, other := event.IDOf("goal.reached", "one"), event.IDOf("goal.reached", "other")
	id := bonusID(one, at)
	seconds, nanos := id.Time().UnixTime()
	if made := time.Unix(seconds, nanos); id.Version() != 7 || id.Variant() != uuid.RFC4122 || !made.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("%s has version %d of %s", id, id.Version(), made)
	}
	if id != bonusID(one, at) || id == bonusID(other, at) {
		t.Error("the id is not that of the event")
	}
}

func TestAGoalThatWasToldBeforeEarnsNothing(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	g := goalReached(newID(), f.now, 250_00)
	if err := handle(f, f.earnFromGoals, g); err != nil {
		t.Fatal(err)
	}
	before := f.state()
	f.now = f.now.Add(time.Hour)
	if err := handle(f, f.earnFromGoals, g); fault.KindOf(err) != fault.Conflict {
		t.Errorf("again: %v", err)
	}
	same(t, before, f.state())
}

func TestAGoalWithoutARewardOrWithAnImpossibleOneEarnsNothing(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	before := f.state()
	for name, row := range map[string]struct {
		change func(*event.GoalReached)
		kind   fault.Kind
	}{
		"no reward":        {func(g *event.GoalReached) { g.Reward = nil }, fault.Unknown},
		"a reward of 0":    {func(g *event.GoalReached) { g.Reward = new(money.BRL(0)) }, fault.Invalid},
		"a reward below 0": {func(g *event.GoalReached) { g.Reward = new(money.BRL(-1)) }, fault.Invalid},
		"no goal_id":       {func(g *event.GoalReached) { g.GoalID = uuid.Nil }, fault.Invalid},
		"no partner_id":    {func(g *event.GoalReached) { g.PartnerID = uuid.Nil }, fault.Invalid},
	} {
		g := goalReached(newID(), f.now, 250_00)
		row.change(&g.Data)
		if err := handle(f, f.earnFromGoals, g); fault.KindOf(err) != row.kind || row.kind == fault.Unknown && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	same(t, before, f.state())
}
