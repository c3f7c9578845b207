package goals_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
)

const march = `"period":"month","starts_at":"2026-01-01T00:00:00Z"`

func TestASaleAtTheTurnOfTheMonthCountsInTheMonthOfTheGoalsZone(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	local := w.goal(shop, march)
	universal := w.goal(shop, march+`,"timezone":"UTC"`)
	ana := uuid.New()

	w.sell(sale(shop, ana, at("2026-04-01T02:59:59.999999Z")), sale(shop, ana, at("2026-04-01T03:00:00Z")))

	for _, row := range []struct{ goal, start, want string }{
		{local, "2026-03-01T03:00:00Z", "1"},
		{local, "2026-04-01T03:00:00Z", "1"},
		{universal, "2026-03-01T00:00:00Z", ""},
		{universal, "2026-04-01T00:00:00Z", "2"},
	} {
		got := ""
		if fields := strings.Fields(w.board(shop, row.goal, "?period_start="+row.start)); len(fields) > 0 {
			got = fields[1]
		}
		if got != row.want {
			t.Errorf("the period from %s has %q sales, want %q", row.start, got, row.want)
		}
	}
	w.assertTotals()
}

func TestASaleCountsOnlyWhereTheGoalWantsIt(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.run()
	ana, bia := uuid.New(), uuid.New()
	campaign := uuid.New()
	in := func(id uuid.UUID, e event.Event[event.SaleRecorded]) event.Event[event.SaleRecorded] {
		e.Data.CampaignID = id
		return e
	}
	window := `"starts_at":"2026-05-01T00:00:00Z","ends_at":"2026-06-01T00:00:00Z"`
	everything := w.goal(shop, `"target":9,`+window)
	ofCampaign := w.goal(shop, `"target":9,`+window+fmt.Sprintf(`,"campaign_id":%q`, campaign))
	ofBia := w.goal(shop, `"target":9,`+window+fmt.Sprintf(`,"partner_ids":[%q]`, bia))
	amounts := w.goal(shop, `"target":50.5,"metric":"sales_amount",`+window)
	foreign := w.goal(other, `"target":9,`+window)

	w.sell(
		sale(shop, ana, at("2026-04-30T23:59:59.999999Z")), // before the window
		in(campaign, sale(shop, ana, at("2026-05-01T00:00:00Z"))),
		sale(shop, ana, at("2026-05-31T23:59:59.999999Z")),
		worth(2550, sale(shop, bia, at("2026-05-15T12:00:00Z"))),
		sale(shop, bia, at("2026-06-01T00:00:00Z")), // after it
	)

	for _, row := range []struct{ name, goal, want string }{
		{"everything", everything, ana.String() + " 2 22.22% false #1\n" + bia.String() + " 1 11.11% false #2"},
		{"one campaign", ofCampaign, ana.String() + " 1 11.11% false #1"},
		{"one partner", ofBia, bia.String() + " 1 11.11% false #1"},
		{"amounts", amounts, bia.String() + " 25.5 50.5% false #1\n" + ana.String() + " 20 39.6% false #2"},
	} {
		if got := w.board(shop, row.goal, ""); got != row.want {
			t.Errorf("%s: the leaderboard is\n%s\nwant\n%s", row.name, got, row.want)
		}
	}
	if got := w.board(other, foreign, ""); got != "" {
		t.Errorf("another tenant's goal has counted %s", got)
	}
	w.assertTotals()
}

func TestAGoalIsToldOnceWhenItIsReached(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana := uuid.New()
	id := w.goal(shop, `"metric":"sales_amount","target":25.50,"reward_brl":5,"ends_at":"2999-01-01T00:00:00Z"`)
	soon := time.Now().Add(time.Minute)

	w.sell(sale(shop, ana, soon), sale(shop, ana, soon))
	if told := w.reached(); len(told) != 0 {
		t.Fatalf("told before it was reached: %+v", told)
	}
	w.sell(worth(550, sale(shop, ana, soon)))
	w.sell(sale(shop, ana, soon))

	told := w.reached()
	if len(told) != 1 {
		t.Fatalf("told %d times, want once", len(told))
	}
	e := told[0]
	if e.GoalID.String() != id || e.PartnerID != ana || e.Name != "Three" || e.Metric != "sales_amount" {
		t.Errorf("the event is about %+v", e)
	}
	if e.Target.String() != "25.50" || e.Progress.String() != "25.50" || e.Reward == nil || e.Reward.String() != "5.00" {
		t.Errorf("the event says progress %s of %s for %v", e.Progress, e.Target, e.Reward)
	}
	if e.PeriodEnd == nil || !e.PeriodEnd.Equal(at("2999-01-01T00:00:00Z")) || e.ReachedAt.IsZero() {
		t.Errorf("the event has period end %v and moment %s", e.PeriodEnd, e.ReachedAt)
	}
	if got, want := w.board(shop, id, ""), ana.String()+" 35.5 139.22% true #1"; got != want {
		t.Errorf("the leaderboard is %s, want %s", got, want)
	}
}

func TestAMonthlyGoalIsReachedAnewInEveryMonth(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana := uuid.New()
	w.goal(shop, `"target":1,"period":"month","timezone":"UTC"`)
	thisMonth := time.Now().UTC()
	nextMonth := time.Date(thisMonth.Year(), thisMonth.Month()+1, 2, 0, 0, 0, 0, time.UTC)

	w.sell(sale(shop, ana, thisMonth), sale(shop, ana, thisMonth), sale(shop, ana, nextMonth), sale(shop, ana, nextMonth))

	told := w.reached()
	if len(told) != 2 || told[0].PeriodStart.Equal(told[1].PeriodStart) {
		t.Errorf("told %+v, want once for each of two months", told)
	}
}

func TestDeliveringEverythingAgainInAnotherOrderChangesNothing(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.run()
	partners := ids(5)
	var sales []any
	for i := range 600 {
		owner := []tenant{shop, other}[i%2]
		sales = append(sales, sale(owner, partners[i%5], time.Now().Add(-time.Duration(i)*time.Hour)))
	}
	for _, owner := range []tenant{shop, other} {
		w.goal(owner, `"period":"month","starts_at":"2026-01-01T00:00:00Z","target":10`)
		w.goal(owner, `"metric":"sales_amount","target":300`)
	}
	events := w.seal(sales...)
	w.publish(events)
	w.drained()
	w.assertTotals()
	before := w.dump()

	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for i := range events {
		events[i].MessageID += ":r1"
	}
	w.publish(events)
	w.drained()

	if after := w.dump(); after != before {
		t.Errorf("the tables have changed from\n%s\nto\n%s", before, after)
	}
}

func TestASaleThatIsKnownAddsNothingEvenWithoutItsReceipt(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	w.goal(shop, `"starts_at":"2026-01-01T00:00:00Z","target":1`)
	events := w.seal(sale(shop, uuid.New(), time.Now()))
	w.publish(events)
	w.drained()
	before := w.dump()

	w.exec("delete from receipts")
	events[0].MessageID += ":r1"
	w.publish(events)
	w.drained()

	if after := w.dump(); after != before {
		t.Errorf("the tables have changed from\n%s\nto\n%s", before, after)
	}
}

func TestABadEventIsParkedAndItsNeighboursAreCounted(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	id := func() string { return w.goal(shop, `"starts_at":"2026-01-01T00:00:00Z"`) }
	w.serve()
	goalID := id()
	ana := uuid.New()

	worthless := worth(0, sale(shop, ana, time.Now()))
	nobodys := sale(shop, uuid.Nil, time.Now())
	ancient := sale(shop, ana, at("1999-12-31T23:59:59Z"))
	garbage := w.seal(sale(shop, ana, time.Now()))[0]
	garbage.Body = []byte(strings.Replace(string(garbage.Body), `"amount_brl":10.00`, `"amount_brl":"ten"`, 1))
	events := w.seal(sale(shop, ana, time.Now()), worthless, sale(shop, ana, time.Now()), nobodys, ancient, sale(shop, ana, time.Now()))
	w.publish(append(events, garbage))
	w.run()
	w.drained()

	if got, want := w.board(shop, goalID, ""), ana.String()+" 3 100% true #1"; got != want {
		t.Errorf("the leaderboard is %q, want %q", got, want)
	}
	parked, err := bus.ListParked(t.Context(), w.pool, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(parked) != 4 {
		t.Errorf("%d events are parked, want 4: %+v", len(parked), parked)
	}
	for _, p := range parked {
		if p.Consumer != "goals-count" || !strings.HasPrefix(p.Reason, "invalid_event: ") {
			t.Errorf("parked by %s because of %q", p.Consumer, p.Reason)
		}
	}
	w.assertTotals()
}

func TestTheEventReachesTheStream(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	w.goal(shop, `"target":1`)
	w.sell(sale(shop, uuid.New(), time.Now().Add(time.Minute)))

	if err := w.bus.EnsureStream(t.Context(), bus.Goals); err != nil {
		t.Fatal(err)
	}
	stream, err := w.bus.JetStream().Stream(t.Context(), bus.Goals.Name)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "goal.reached is published", func() bool {
		_, err := stream.GetLastMsgForSubject(t.Context(), event.NameGoalReached)
		return err == nil
	})
}
