package goals_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// past stores so many sales of as many partners as a service would have that has heard
// of them, one in each minute until now.
func (w *world) past(t tenant, sales, partners int) {
	w.t.Helper()
	w.exec(`
		insert into facts (tenant_id, occurred_at, kind, source_id, partner_id, campaign_id, sales, amount_centavos, commission_centavos, conversions)
		select $1, date_trunc('second', now()) - n * interval '1 minute', 'sale', gen_random_uuid(),
			lpad(to_hex(1 + n % $3), 32, '0')::uuid, lpad('1', 32, '0')::uuid, 1, 1000, 100, 0
		from generate_series(1, $2::int) as n`, t.id, sales, partners)
}

// backfill is what a goal shows of it: "<nil>" when nothing is left.
func (w *world) backfill(t tenant, id string) string {
	w.t.Helper()
	return fmt.Sprint(w.call(t, "GET", "/api/v1/goals/"+id, "").body["backfill"])
}

func TestAGoalShowsHowFarItsPastIsCounted(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.steps = 10
	s := w.serve()
	w.past(shop, 95, 5)
	made := w.call(shop, "POST", "/api/v1/goals", goalBody(`"target":20,"external_ref":"g",`+since2026))
	id := made.body["goal_id"].(string)

	if got := fmt.Sprint(made.body["backfill"]); got != "map[done:0 total:11]" { // more than it goes through at once
		t.Errorf("when it is made, the goal shows %s", got)
	}
	for _, want := range []string{
		"map[done:0 total:95]",
		"map[done:10 total:95]", "map[done:20 total:95]", "map[done:30 total:95]", "map[done:40 total:95]",
		"map[done:50 total:95]", "map[done:60 total:95]", "map[done:70 total:95]", "map[done:80 total:95]", "map[done:90 total:95]", "map[done:95 total:95]",
	} {
		if _, err := s.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.backfill(shop, id); got != want {
			t.Errorf("after a step the goal shows %s, want %s", got, want)
		}
	}
	s.Fill(t.Context())
	if got := w.backfill(shop, id); got != "<nil>" {
		t.Errorf("in the end the goal shows %s", got)
	}
	if more, err := s.Step(t.Context()); more || err != nil {
		t.Errorf("there is another step: %t, %v", more, err)
	}
	w.assertTotals()
	repeat := w.call(shop, "POST", "/api/v1/goals", goalBody(`"target":20,"external_ref":"g",`+since2026))
	if repeat.status != http.StatusOK || repeat.raw != strings.Replace(made.raw, `"idempotent":false`, `"idempotent":true`, 1) {
		t.Errorf("a repeat answers %d %s, want the first result %s", repeat.status, repeat.raw, made.raw)
	}
}

func TestACallThatHoldsTheTenantJudgesOnlySoMany(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	s := w.serve()
	id := w.goal(shop, since2026)
	w.exec(`insert into totals (tenant_id, goal_id, partner_id, period_start, progress)
		select tenant_id, goal_id, lpad(to_hex(n), 32, '0')::uuid, starts_at, case when n % 5000 = 0 then 3 else 1 end from goals, generate_series(1, 25000) as n`)
	w.change(shop, id, `"starts_at":"2026-01-02T00:00:00Z"`)
	last := uuid.UUID{14: 10_000 >> 8, 15: 10_000 & 0xff}
	if judged := w.rows(`select coalesce(judged_partner::text, 'nobody') from goals`)[0]; judged != last.String() {
		t.Errorf("within the call it judged as far as %s, want the ten thousandth", judged)
	}
	if got := w.backfill(shop, id); got == "<nil>" {
		t.Error("the goal shows that nothing is left to do")
	}
	s.Fill(t.Context())
	if told, left := len(w.reached()), w.backfill(shop, id); told != 5 || left != "<nil>" {
		t.Errorf("in the end %d are told of, want 5, and %s is left", told, left)
	}
}

func TestNobodyReachesAGoalBeforeItsPastIsCounted(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.steps = 2
	s := w.serve() // which counts only what it is told to
	ana, bia := uuid.New(), uuid.New()
	hours := func(ago int) time.Time { return w.now().Add(-time.Duration(ago) * time.Hour) }
	count := func(happened ...any) {
		t.Helper()
		if err := s.Count(t.Context(), w.sealed(happened...)); err != nil {
			t.Fatal(err)
		}
	}
	withdrawn := sale(shop, ana, hours(1))
	for ago := range 30 {
		count(sale(shop, uuid.New(), hours(10+ago)))
	}
	count(sale(shop, ana, hours(5)), sale(shop, ana, hours(4)), withdrawn, refund(withdrawn, 1000, 0), sale(shop, bia, hours(3)), sale(shop, bia, hours(2)))
	id := w.goal(shop, since2026) // of three sales
	count(sale(shop, bia, w.now()))

	for len(w.rows("select '' from stretches")) > 0 {
		if told := w.reached(); len(told) != 0 {
			t.Fatalf("with %s the goal is reached by %s", w.backfill(shop, id), told[0].PartnerID)
		}
		if more, err := s.Step(t.Context()); err != nil || !more {
			t.Fatalf("there is no other step: %v", err)
		}
	}
	s.Fill(t.Context())
	if told := w.reached(); len(told) != 1 || told[0].PartnerID != bia || told[0].Progress.Value != 3 {
		t.Errorf("told of %+v, want of Bia, who has three sales together with one that came meanwhile", told)
	}
	if begun := w.rows(`select traceparent from outbox where name = 'goal.reached'`); begun[0] == "" {
		t.Error("what the past has brought about is told without a trace")
	}
	count(sale(shop, ana, w.now()))
	if told := w.reached(); len(told) != 2 {
		t.Errorf("told %d times, want Ana's third sale to count as well", len(told))
	}
	w.assertTotals()
}

func TestNobodyReachesAGoalByWhatIsStillToBeTakenOut(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.steps = 2
	s := w.serve() // which counts only what it is told to
	ana, now := uuid.New(), w.now()
	count := func(happened ...any) {
		t.Helper()
		if err := s.Count(t.Context(), w.sealed(happened...)); err != nil {
			t.Fatal(err)
		}
	}
	id := w.goal(shop, since2026) // of three sales
	for range 30 {
		count(sale(shop, uuid.New(), now.Add(-3*time.Hour)))
	}
	count(sale(shop, ana, now.Add(-2*time.Hour)), sale(shop, ana, now.Add(-2*time.Hour)))
	w.change(shop, id, fmt.Sprintf(`"starts_at":%q`, now.Add(-time.Hour).Format(time.RFC3339)))

	count(sale(shop, ana, now)) // her first that counts by now
	if got := w.backfill(shop, id); got == "<nil>" {
		t.Fatal("everything is taken out already: this tells nothing")
	}
	s.Fill(t.Context())
	if told := w.reached(); len(told) != 0 {
		t.Errorf("told of %+v", told)
	}
	count(sale(shop, ana, now), sale(shop, ana, now))
	if told := w.reached(); len(told) != 1 {
		t.Errorf("told %d times of Ana's three sales, want once", len(told))
	}
	w.assertTotals()
}

func TestALongPastHoldsUpNoOtherGoal(t *testing.T) {
	w := newWorld(t)
	large, small := w.tenant(), w.tenant()
	w.steps = 5
	s := w.serve()
	w.past(large, 400, 5)
	w.past(small, 40, 5)
	long, short := w.goal(large, since2026), w.goal(small, since2026)
	for turn := 0; w.backfill(small, short) != "<nil>"; turn++ {
		if turn > 20 {
			t.Fatalf("after %d turns the small goal shows %s, the large one %s", turn, w.backfill(small, short), w.backfill(large, long))
		}
		s.Turn(t.Context())
	}
	if w.backfill(large, long) == "<nil>" {
		t.Error("the large goal is filled already: this tells nothing")
	}
	s.Fill(t.Context())
	w.assertTotals()
}

func TestManyGoalsOfOneTenantHoldUpNoOther(t *testing.T) {
	w := newWorld(t)
	large, small := w.tenant(), w.tenant()
	w.steps = 5
	s := w.serve()
	w.past(large, 400, 5)
	w.past(small, 40, 5)
	for range 20 {
		w.goal(large, since2026)
	}
	short := w.goal(small, since2026)
	turns := 0
	for ; w.backfill(small, short) != "<nil>"; turns++ {
		if turns > 20 {
			t.Fatalf("after %d turns the small tenant's goal shows %s", turns, w.backfill(small, short))
		}
		s.Turn(t.Context())
	}
	if done := w.rows(`select (sum(past_done) <= $2::int)::text from goals where tenant_id = $1`, large.id, 5*turns)[0]; done != "true" {
		t.Error("in a turn the large tenant has more than a step")
	}
	for range 20 {
		s.Turn(t.Context())
	}
	if even := w.rows(`select (max(past_done) - min(past_done) <= 5)::text from goals where tenant_id = $1`, large.id)[0]; even != "true" {
		t.Error("of the large tenant's goals one is more than a step ahead of another")
	}
}

func TestAGoalThatCannotBeFilledHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.steps = 5
	s := w.serve()
	w.past(shop, 40, 5)
	w.past(other, 40, 5)
	broken, whole, others := w.goal(shop, since2026), w.goal(shop, since2026), w.goal(other, since2026)
	w.exec(`update goals set timezone = 'Mars/Olympus' where goal_id = $1`, broken)
	s.Fill(t.Context())
	if got := w.rows(`select goal_id::text from goals where past_total is not null`); !slices.Equal(got, []string{broken}) {
		t.Errorf("%v are not filled, want only %s, and neither %s nor %s", got, broken, whole, others)
	}
}

func TestAPastThatTakesLongToMeasureIsCountedUnmeasured(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.steps = 10
	s := w.serve()
	s.SizeWithin(50 * time.Millisecond)
	w.past(shop, 95, 5)
	id := w.goal(shop, since2026)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `lock table facts`); err != nil { // nobody can count them
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Step(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"map[done:10 total:11]", "map[done:20 total:20]"} {
		if _, err := s.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.backfill(shop, id); got != want {
			t.Errorf("after a step the goal shows %s, want %s", got, want)
		}
	}
	s.Fill(t.Context())
	if got := w.backfill(shop, id); got != "<nil>" {
		t.Errorf("in the end the goal shows %s", got)
	}
	w.assertTotals()
}

func TestGoalsAreFilledAndChangedWhileSalesStreamIn(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.steps = 40
	w.past(shop, 1500, 7)
	w.run()
	w.run()
	const lots, lotSize, goalsMade = 60, 20, 12
	partners := ids(4)
	var everything sync.WaitGroup
	everything.Go(func() {
		for lot := range lots {
			var happened []any
			for i := range lotSize {
				happened = append(happened, sale(shop, partners[i%len(partners)], w.now().Add(-time.Duration(lot+i)*time.Hour)))
			}
			w.publish(w.seal(happened...))
		}
	})
	later := fmt.Sprintf(`"starts_at":%q`, w.now().AddDate(0, 0, -10).Format(time.RFC3339))
	for i := range goalsMade {
		members := `"target":100,` + since2026
		if i%2 == 0 {
			members += `,"period":"month","metric":"sales_amount"`
		}
		id := w.goal(shop, members)
		for _, change := range []string{`"status":"archived"`, later, `"status":"active"`, since2026} {
			if i%3 > 0 {
				w.change(shop, id, change)
			}
		}
	}
	everything.Wait()
	w.drained()
	eventually(t, "every goal is filled", func() bool { return len(w.rows("select '' from goals where past_total is not null")) == 0 })

	if facts := w.rows("select count(*)::text from facts")[0]; facts != fmt.Sprint(1500+lots*lotSize) {
		t.Errorf("there are %s facts, want %d", facts, 1500+lots*lotSize)
	}
	w.assertTotals()
	w.assertReached()
}
