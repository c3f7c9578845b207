package goals_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// change changes a goal and returns it.
func (w *world) change(t tenant, id, members string) map[string]any {
	w.t.Helper()
	a := w.call(t, "PATCH", "/api/v1/goals/"+id, "{"+members+"}")
	if a.status != http.StatusOK {
		w.t.Fatalf("change goal: %d %s", a.status, a.raw)
	}
	return a.body
}

func TestAChangeTouchesOnlyTheMembersThatAreSent(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	id := w.goal(shop, `"period":"month","starts_at":"2026-03-01T00:00:00Z","ends_at":"2999-01-01T00:00:00Z"`)
	for _, row := range []struct{ members, member, want string }{
		{`"name":"New"`, "name", "New"},
		{`"starts_at":"2026-02-01T00:00:00-03:00"`, "starts_at", "2026-02-01T03:00:00Z"},
		{`"ends_at":"2998-01-01T00:00:00Z"`, "ends_at", "2998-01-01T00:00:00Z"},
		{`"ends_at":null`, "ends_at", "<nil>"},
		{`"status":"archived"`, "status", "archived"},
		{`"status":"active"`, "status", "active"},
	} {
		before := w.call(shop, "GET", "/api/v1/goals/"+id, "").body
		changed := w.change(shop, id, row.members)
		if got := fmt.Sprint(changed[row.member]); got != row.want {
			t.Errorf("%s makes it %s, want %s", row.members, got, row.want)
		}
		before[row.member] = changed[row.member]
		if fmt.Sprint(before) != fmt.Sprint(changed) {
			t.Errorf("%s makes\n%v\nof\n%v", row.members, changed, before)
		}
		if now := w.call(shop, "GET", "/api/v1/goals/"+id, "").body; fmt.Sprint(now) != fmt.Sprint(changed) {
			t.Errorf("after %s it reads\n%v\nwant\n%v", row.members, now, changed)
		}
	}
}

func TestAChangeThatCannotBeMadeIsRefused(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.serve()
	id := w.goal(shop, `"starts_at":"2026-03-01T00:00:00Z","ends_at":"2026-06-01T00:00:00Z"`)
	before := w.dump()
	for _, row := range []struct{ body, path, code string }{
		{`{}`, "", "too_short"},
		{`{"ends_at":"2026-03-01T00:00:00Z"}`, "/ends_at", "too_small"},
		{`{"starts_at":"2026-06-01T00:00:00Z"}`, "/ends_at", "too_small"},
		{`{"status":"ended"}`, "/status", "not_allowed"},
		{`{"target":5}`, "/target", "unknown_member"},
	} {
		a := w.call(shop, "PATCH", "/api/v1/goals/"+id, row.body)
		if a.status != http.StatusBadRequest || !strings.Contains(a.raw, `{"path":"`+row.path+`","code":"`+row.code+`"`) {
			t.Errorf("%s answers %d %s", row.body, a.status, a.raw)
		}
	}
	for _, method := range []string{"PATCH", "DELETE"} {
		for _, foreign := range []string{"/api/v1/goals/" + id, "/api/v1/goals/" + uuid.NewString()} {
			if a := w.call(other, method, foreign, `{"name":"Mine"}`); a.status != http.StatusNotFound {
				t.Errorf("%s of another tenant's goal answers %d %s", method, a.status, a.raw)
			}
		}
		if a := w.call(shop, method, "/api/v1/goals/"+id+"?force=1", `{"name":"Mine"}`); a.status != http.StatusBadRequest {
			t.Errorf("%s with an unknown parameter answers %d %s", method, a.status, a.raw)
		}
	}
	if after := w.dump(); after != before {
		t.Errorf("refused calls have changed the tables from\n%s\nto\n%s", before, after)
	}
}

func TestProgressFollowsTheGoalsWindow(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana := uuid.New()
	for _, day := range []string{"01-10", "02-10", "03-10", "04-10", "05-10"} {
		w.sell(sale(shop, ana, at("2026-"+day+"T12:00:00Z")))
	}
	id := w.goal(shop, `"target":100,"starts_at":"2026-03-01T00:00:00Z","ends_at":"2026-04-01T00:00:00Z"`)
	for _, row := range []struct{ members, want string }{
		{`"starts_at":"2026-02-01T00:00:00Z"`, "2"},
		{`"ends_at":null`, "4"},
		{`"ends_at":"2026-04-10T12:00:00Z"`, "2"},
		{`"ends_at":"2026-04-10T12:00:00.000001Z"`, "3"},
		{`"starts_at":"2026-05-01T00:00:00Z","ends_at":"2026-06-01T00:00:00Z"`, "1"},
		{`"starts_at":"2026-06-01T00:00:00Z","ends_at":null`, "0"},
		{`"starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-02-10T12:00:00Z"`, "1"},
		{`"name":"The same"`, "1"},
	} {
		if changed := w.change(shop, id, row.members); changed["backfill"] != nil {
			t.Errorf("after %s there is still to do %v", row.members, changed["backfill"])
		}
		if got := w.standing(shop, id); got != row.want {
			t.Errorf("after %s the progress is %s, want %s", row.members, got, row.want)
		}
		w.assertTotals()
	}
	board := w.call(shop, "GET", "/api/v1/goals/"+id+"/progress", "")
	if !strings.Contains(board.raw, `"period_start":"2026-01-01T00:00:00Z","period_end":"2026-02-10T12:00:00Z"`) {
		t.Errorf("the period of a goal in all is not its window: %s", board.raw)
	}
}

func TestTheOnePeriodOfAGoalThatWasMovedIsThatOfItsSales(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana, bia := uuid.New(), uuid.New()
	made := w.now().UTC().Truncate(time.Second)
	moved, ends := made.AddDate(0, 0, -2).Format(time.RFC3339), made.AddDate(0, 0, 3).Format(time.RFC3339)
	id := w.goal(shop, fmt.Sprintf(`"target":2,"starts_at":%q`, made.Format(time.RFC3339)))
	w.sell(sale(shop, ana, made.AddDate(0, 0, -1)), sale(shop, ana, made), sale(shop, bia, made))
	w.change(shop, id, fmt.Sprintf(`"starts_at":%q,"ends_at":%q`, moved, ends))

	period := fmt.Sprintf(`"period_start":%q,"period_end":%q`, moved, ends)
	for _, path := range []string{"/api/v1/goals/" + id + "/progress?period_start=" + moved, "/api/v1/goals/progress?partner_id=" + ana.String()} {
		if a := w.call(shop, "GET", path, ""); !strings.Contains(a.raw, period) {
			t.Errorf("%s answers %s, want %s", path, a.raw, period)
		}
	}
	if board := w.board(shop, id, "?period_start="+made.Format(time.RFC3339)); board != "" {
		t.Errorf("in a period that begins where the goal began at first stands %s", board)
	}
	if rows := w.pages(shop, "/api/v1/goals/"+id+"/progress", 1, func() {}); len(rows) != 2 {
		t.Errorf("page by page there are %d rows, want 2", len(rows))
	}
	w.change(shop, id, fmt.Sprintf(`"starts_at":%q`, made.AddDate(0, 0, -3).Format(time.RFC3339)))
	if told := w.reached(); len(told) != 1 || told[0].PeriodStart.Format(time.RFC3339) != moved || told[0].PeriodEnd.Format(time.RFC3339) != ends {
		t.Errorf("told of %+v, want one, in the window of that time: %s", told, period)
	}
}

func TestAWiderWindowReachesTheGoalOnceAndOnlyWhatWasNotOver(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana, bia := uuid.New(), uuid.New()
	today := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	starting := func(days int) string {
		return fmt.Sprintf(`"starts_at":%q`, today.AddDate(0, 0, days).Format(time.RFC3339))
	}
	w.ahead.Store(int64(time.Until(today.Add(12 * time.Hour))))
	id := w.goal(shop, `"target":2,"period":"day","timezone":"UTC",`+starting(1))
	for _, when := range []time.Time{today.Add(-time.Hour), today.Add(time.Hour)} {
		w.sell(sale(shop, ana, when), sale(shop, ana, when))
	}
	w.sell(sale(shop, bia, today.Add(time.Hour)))
	w.ahead.Store(int64(time.Until(today.Add(60 * time.Hour))))
	w.change(shop, id, starting(-1)) // the day before was over when the goal was made
	w.change(shop, id, starting(2))
	w.change(shop, id, starting(-1))

	told := w.reached()
	if len(told) != 1 || told[0].PartnerID != ana || !told[0].PeriodStart.Equal(today) {
		t.Errorf("told of %+v, want Ana's %s", told, today)
	}
	w.assertTotals()
}

func TestAnArchivedGoalStandsStillAndCatchesUpWhenItIsActiveAgain(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana := uuid.New()
	id := w.goal(shop, `"target":4,`+since2026)
	early := sale(shop, ana, w.now())
	w.sell(early, sale(shop, ana, w.now()))
	w.change(shop, id, `"status":"archived"`)
	w.sell(sale(shop, ana, w.now()), sale(shop, ana, w.now()), sale(shop, ana, at("2025-12-31T12:00:00Z")))
	w.change(shop, id, `"status":"archived"`) // again
	w.sell(refund(early, 1000, 0))
	if got := w.standing(shop, id); got != "2" {
		t.Errorf("while it is archived the progress is %s, want 2", got)
	}
	w.change(shop, id, `"starts_at":"2025-01-01T00:00:00Z"`) // of what it has counted
	if got := w.standing(shop, id); got != "2" {
		t.Errorf("after a change while it is archived the progress is %s, want 2", got)
	}
	w.assertTotals()
	if told := w.reached(); len(told) != 0 {
		t.Errorf("an archived goal is reached: %+v", told)
	}

	w.change(shop, id, `"status":"active"`)
	if got := w.standing(shop, id); got != "4" {
		t.Errorf("active again, the progress is %s, want 4", got)
	}
	if told := w.reached(); len(told) != 1 {
		t.Errorf("told %d times, want once", len(told))
	}
	w.sell(sale(shop, ana, w.now()))
	w.assertTotals()
}

func TestARepeatAnswersTheFirstResultAlsoAfterAChange(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	body := goalBody(`"external_ref":"g","starts_at":"2026-01-01T00:00:00Z"`)
	made := w.call(shop, "POST", "/api/v1/goals", body)
	w.change(shop, made.body["goal_id"].(string), `"name":"Another","starts_at":"2026-02-01T00:00:00Z","status":"archived"`)

	repeat := w.call(shop, "POST", "/api/v1/goals", body)
	want := strings.Replace(made.raw, `"idempotent":false`, `"idempotent":true`, 1)
	if repeat.status != http.StatusOK || repeat.raw != want || repeat.header.Get("Idempotency-Mismatch") != "" {
		t.Errorf("the repeat answers %d %v\n%s\nwant\n%s", repeat.status, repeat.header, repeat.raw, want)
	}
}

func TestADeletedGoalIsGoneWithAllThatWasCounted(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.steps = 10
	w.run()
	var happened []any
	for _, partner := range ids(35) {
		happened = append(happened, sale(shop, partner, w.now()))
	}
	id, kept := w.goal(shop, `"external_ref":"g",`+since2026), w.goal(shop, since2026)
	w.sell(happened...)

	if a := w.call(shop, "DELETE", "/api/v1/goals/"+id, ""); a.status != http.StatusNoContent {
		t.Fatalf("delete answers %d %s", a.status, a.raw)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if a := w.call(shop, method, "/api/v1/goals/"+id, ""); a.status != http.StatusNotFound {
			t.Errorf("%s of a deleted goal answers %d %s", method, a.status, a.raw)
		}
	}
	w.sell(sale(shop, uuid.New(), w.now()))
	eventually(t, "its totals are cleared", func() bool {
		return len(w.rows("select '' from leftovers")) == 0
	})
	if left := w.rows("select distinct goal_id::text from totals"); len(left) != 1 || left[0] != kept {
		t.Errorf("there are totals of %v, want those of %s", left, kept)
	}
	w.assertTotals()
	if again := w.call(shop, "POST", "/api/v1/goals", goalBody(`"external_ref":"g"`)); again.status != http.StatusCreated {
		t.Errorf("its external_ref answers %d %s", again.status, again.raw)
	}
}

func TestAGoalThatSomebodyReachedCannotBeDeleted(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	id := w.goal(shop, `"target":1,`+since2026)
	sold := sale(shop, uuid.New(), w.now())
	w.sell(sold)
	w.sell(refund(sold, 1000, 0))
	before := w.dump()

	if a := w.call(shop, "DELETE", "/api/v1/goals/"+id, ""); a.status != http.StatusConflict || a.body["code"] != "conflict" {
		t.Errorf("delete answers %d %s", a.status, a.raw)
	}
	if after := w.dump(); after != before {
		t.Errorf("the tables have changed from\n%s\nto\n%s", before, after)
	}
}
