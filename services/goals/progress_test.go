package goals_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTheLeaderboardSharesRanksAndPagesThroughAllRows(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	id := w.goal(shop, `"target":4`)
	partners := ids(6)
	soon := time.Now().Add(time.Minute)
	for i, sales := range []int{1, 4, 2, 2, 4, 2} {
		for range sales {
			w.publish(w.seal(sale(shop, partners[i], soon)))
		}
	}
	w.drained()
	line := func(i, progress int, percent string, reached bool, rank int) string {
		return fmt.Sprintf("%s %d %s%% %t #%d", partners[i], progress, percent, reached, rank)
	}
	want := strings.Join([]string{
		line(1, 4, "100", true, 1), line(4, 4, "100", true, 1),
		line(2, 2, "50", false, 3), line(3, 2, "50", false, 3), line(5, 2, "50", false, 3),
		line(0, 1, "25", false, 6),
	}, "\n")

	if got := w.board(shop, id, ""); got != want {
		t.Errorf("the leaderboard is\n%s\nwant\n%s", got, want)
	}
	for limit := 1; limit <= 6; limit++ {
		var pages []string
		query := fmt.Sprintf("?limit=%d", limit)
		for more := true; more && len(pages) < 7; {
			pages = append(pages, w.board(shop, id, query))
			var cursor string
			cursor, more = w.call(shop, "GET", "/api/v1/goals/"+id+"/progress"+query, "").body["next_cursor"].(string)
			query = fmt.Sprintf("?limit=%d&cursor=%s", limit, cursor)
		}
		if got := strings.Join(pages, "\n"); got != want {
			t.Errorf("in pages of %d the leaderboard is\n%s\nwant\n%s", limit, got, want)
		}
	}
	if got, want := w.board(shop, id, "?partner_id="+partners[3].String()), line(3, 2, "50", false, 3); got != want {
		t.Errorf("one partner's row is %s, want %s", got, want)
	}
	if got := w.board(shop, id, "?partner_id="+shop.id.String()); got != "" {
		t.Errorf("a partner who sold nothing has the row %s", got)
	}
}

func TestARowOfTheLeaderboardHasAllItsMembers(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	id := w.goal(shop, `"metric":"sales_amount","target":7,"period":"month","timezone":"UTC","starts_at":"2026-01-01T00:00:00Z"`)
	ana := ids(1)[0]
	now := time.Now().UTC()
	start := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	w.sell(sale(shop, ana, now), worth(1, sale(shop, ana, at("2026-05-10T00:00:00Z"))))

	got := w.call(shop, "GET", "/api/v1/goals/"+id+"/progress?period_start="+start.Format("2006-01-02T15:04:05")+"-00:00", "")
	reachedAt := got.body["data"].([]any)[0].(map[string]any)["reached_at"]
	want := fmt.Sprintf(`{"data":[{"goal_id":%q,"partner_id":%q,"period_start":%q,"period_end":%q,`+
		`"progress":10.00,"target":7.00,"percent":142.86,"reached":true,"reached_at":%q,"rank":1}],"next_cursor":null}`,
		id, ana, start.Format(time.RFC3339), start.AddDate(0, 1, 0).Format(time.RFC3339), reachedAt)
	if got.raw != want {
		t.Errorf("the month is\n%s\nwant\n%s", got.raw, want)
	}
	got = w.call(shop, "GET", "/api/v1/goals/"+id+"/progress?period_start=2026-05-01T00:00:00Z", "")
	if !strings.Contains(got.raw, `"progress":0.01,"target":7.00,"percent":0.14,"reached":false,"reached_at":null,"rank":1`) {
		t.Errorf("May is %s", got.raw)
	}
	for _, nothing := range []string{"?period_start=2026-03-01T00:00:00Z", "?period_start=2026-05-01T03:00:00Z"} {
		if got := w.call(shop, "GET", "/api/v1/goals/"+id+"/progress"+nothing, ""); got.raw != `{"data":[],"next_cursor":null}` {
			t.Errorf("%q answers %s, want no rows", nothing, got.raw)
		}
	}
}

func TestWithoutAPeriodTheLeaderboardIsOfThePresentOne(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana := ids(1)[0]
	id := w.goal(shop, `"period":"month","starts_at":"2026-01-01T00:00:00Z"`)
	w.sell(sale(shop, ana, at("2026-03-10T00:00:00Z")), sale(shop, ana, time.Now()), sale(shop, ana, time.Now()))

	if got, want := w.board(shop, id, ""), ana.String()+" 2 66.67% false #1"; got != want {
		t.Errorf("the leaderboard is %q, want %q", got, want)
	}
}

func TestACursorOfAnotherLeaderboardIsRefused(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	one, other := w.goal(shop, ""), w.goal(shop, fmt.Sprintf(`"campaign_id":%q`, ids(1)[0]))
	partners := ids(2)
	soon := time.Now().Add(time.Minute)
	w.sell(sale(shop, partners[0], soon), sale(shop, partners[1], soon))
	cursor := w.call(shop, "GET", "/api/v1/goals/"+one+"/progress?limit=1", "").body["next_cursor"].(string)

	for path, want := range map[string]int{
		"/api/v1/goals/" + one + "/progress?limit=1&cursor=" + cursor:   http.StatusOK,
		"/api/v1/goals/" + other + "/progress?limit=1&cursor=" + cursor: http.StatusBadRequest,
		"/api/v1/goals?cursor=" + cursor:                                http.StatusBadRequest,
		"/api/v1/goals/" + one + "/progress?cursor=" + cursor + "x":     http.StatusBadRequest,
	} {
		if got := w.call(shop, "GET", path, ""); got.status != want {
			t.Errorf("%s answers %d %s, want %d", path, got.status, got.raw, want)
		}
	}
}
