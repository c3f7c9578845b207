package goals_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/services/goals"
)

// place is one row of a leaderboard as the test has made it.
type place struct {
	partner  uuid.UUID
	progress int
}

// stand writes totals of a goal that exists, in its only period, without any sales.
func (w *world) stand(t tenant, goalID string, places ...place) {
	w.t.Helper()
	for _, p := range places {
		w.exec(`insert into totals (tenant_id, goal_id, partner_id, period_start, progress)
			select tenant_id, goal_id, $3, starts_at, $4 from goals where tenant_id = $1 and goal_id = $2
			on conflict (tenant_id, goal_id, partner_id, period_start) do update set progress = excluded.progress`, t.id, goalID, p.partner, p.progress)
	}
}

// row is one row as it is answered.
type row struct {
	partner  string
	progress int
	rank     any // nil or a number
}

func rowsOf(t *testing.T, body map[string]any) (rows []row) {
	t.Helper()
	data, ok := body["data"].([]any)
	if !ok {
		t.Fatalf("%v is no list", body)
	}
	for _, each := range data {
		m := each.(map[string]any)
		rows = append(rows, row{m["partner_id"].(string), int(m["progress"].(float64)), m["rank"]})
	}
	return rows
}

// pages reads a list to its end; between its pages it calls meanwhile.
func (w *world) pages(t tenant, path string, limit int, meanwhile func()) (all []row) {
	w.t.Helper()
	query := fmt.Sprintf("?limit=%d", limit)
	for {
		a := w.call(t, "GET", path+query, "")
		if a.status != 200 {
			w.t.Fatalf("%s: %d %s", path+query, a.status, a.raw)
		}
		all = append(all, rowsOf(w.t, a.body)...)
		cursor, more := a.body["next_cursor"].(string)
		if !more {
			return all
		}
		query = fmt.Sprintf("?limit=%d&cursor=%s", limit, cursor)
		meanwhile()
	}
}

// ranked are the rows of a leaderboard, worked out in the plainest way.
func ranked(places []place) (rows []row) {
	sorted := slices.Clone(places)
	slices.SortFunc(sorted, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.progress, a.progress), strings.Compare(a.partner.String(), b.partner.String()))
	})
	for _, p := range sorted {
		better := 0
		for _, other := range places {
			if other.progress > p.progress {
				better++
			}
		}
		rows = append(rows, row{p.partner.String(), p.progress, float64(better + 1)})
	}
	return rows
}

func TestRanksAndOrderAreThoseOfAModelInPagesOfAnySize(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	for round := range 12 {
		random := rand.New(rand.NewPCG(uint64(round), 5))
		id := w.goal(shop, "")
		var places []place
		for _, partner := range ids(1 + random.IntN(60)) {
			places = append(places, place{partner, random.IntN(1+random.IntN(12)) - 2})
		}
		w.stand(shop, id, places...)
		want := ranked(places)
		for _, limit := range []int{1, 2, 3, 1 + random.IntN(30), 100} {
			if got := w.pages(shop, "/api/v1/goals/"+id+"/progress", limit, func() {}); !slices.Equal(got, want) {
				t.Fatalf("round %d, pages of %d: %v, want %v", round, limit, got, want)
			}
		}
		for _, one := range want {
			a := w.call(shop, "GET", "/api/v1/goals/"+id+"/progress?partner_id="+one.partner, "")
			if got := rowsOf(t, a.body); len(got) != 1 || got[0] != one {
				t.Fatalf("round %d: alone it is %v, want %v", round, got, one)
			}
		}
	}
}

func TestRowsThatStayWhereTheyAreNeitherRepeatNorHideWhileOthersMove(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	random := rand.New(rand.NewPCG(3, 3))
	id := w.goal(shop, "")
	var staying, moving []place
	for i, partner := range ids(60) {
		p := place{partner, random.IntN(10)}
		if i%3 == 0 {
			moving = append(moving, p)
		} else {
			staying = append(staying, p)
		}
	}
	w.stand(shop, id, append(slices.Clone(staying), moving...)...)
	got := w.pages(shop, "/api/v1/goals/"+id+"/progress", 7, func() {
		for _, p := range moving {
			w.stand(shop, id, place{p.partner, random.IntN(12)})
		}
		w.stand(shop, id, place{uuid.Must(uuid.NewV7()), random.IntN(12)})
	})

	seen := map[string]int{}
	last := row{rank: 0.0, progress: 100}
	for i, r := range got {
		seen[r.partner]++
		if tied := r.progress == last.progress; tied && r.rank != last.rank || !tied && r.rank != float64(i+1) || r.progress > last.progress {
			t.Errorf("row %d is %v after %v", i+1, r, last)
		}
		last = r
	}
	for _, p := range staying {
		if n := seen[p.partner.String()]; n != 1 {
			t.Errorf("a partner who stayed at %d is seen %d times", p.progress, n)
		}
	}
}

func TestACursorGoesOnInItsOwnPeriod(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	id := w.goal(shop, `"period":"month","starts_at":"2026-01-01T00:00:00Z"`)
	partners := ids(2)
	w.sell(sale(shop, partners[0], at("2026-03-10T00:00:00Z")), sale(shop, partners[1], at("2026-03-10T00:00:00Z")))
	path := "/api/v1/goals/" + id + "/progress?limit=1"
	cursor := w.call(shop, "GET", path+"&period_start=2026-03-01T03:00:00Z", "").body["next_cursor"].(string)

	for query, want := range map[string]int{
		"&cursor=" + cursor: 200, "&period_start=2026-03-01T00:00:00-03:00&cursor=" + cursor: 200,
		"&period_start=2026-04-01T03:00:00Z&cursor=" + cursor: 400, "&partner_id=" + partners[1].String() + "&cursor=" + cursor: 400,
	} {
		a := w.call(shop, "GET", path+query, "")
		if a.status != want {
			t.Errorf("%s: %d %s, want %d", query, a.status, a.raw, want)
		}
		if a.status == 200 && !strings.Contains(a.raw, partners[1].String()) {
			t.Errorf("%s: %s, want the second row of March", query, a.raw)
		}
	}
}

func TestAMadeUpCursorIsRefused(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	id := w.goal(shop, since2026)
	cursor := func(start time.Time, rank, position int64) string {
		return goals.Cursor(uuid.MustParse(id), start, rank, position)
	}
	present := w.moments(`select starts_at from goals`)[0]
	for name, row := range map[string]struct {
		cursor string
		want   int
	}{
		"as a page ends":          {cursor(present, 2, 3), 200},
		"before all time":         {cursor(time.UnixMicro(math.MinInt64), 1, 1), 400},
		"before what is accepted": {cursor(at("1998-12-31T23:59:59Z"), 1, 1), 400},
		"after all time":          {cursor(time.UnixMicro(math.MaxInt64), 1, 1), 400},
		"after what is accepted":  {cursor(at("9999-12-31T23:59:59Z").Add(time.Second), 1, 1), 400},
		"without a rank":          {cursor(present, 0, 1), 400},
		"ranked behind its place": {cursor(present, 3, 2), 400},
	} {
		a := w.call(shop, "GET", "/api/v1/goals/"+id+"/progress?cursor="+row.cursor, "")
		if a.status != row.want || row.want == 400 && a.body["code"] != "invalid_parameter" {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.raw, row.want)
		}
	}
}

func TestAPartnersPageHasEveryGoalThatIsMeantForThePartner(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.run()
	partners := ids(3)
	ana, bia := partners[0], partners[1]
	everybodys := w.goal(shop, "")
	w.goal(shop, fmt.Sprintf(`"partner_ids":[%q]`, bia))
	monthly := w.goal(shop, fmt.Sprintf(`"metric":"sales_amount","target":7,"period":"month","partner_ids":[%q,%q],"starts_at":"2026-01-01T00:00:00Z"`, ana, bia))
	untouched := w.goal(shop, fmt.Sprintf(`"campaign_id":%q`, uuid.New()))
	w.goal(other, "")
	soon := time.Now().Add(time.Minute)
	w.sell(sale(shop, ana, soon), sale(shop, bia, soon), sale(shop, bia, soon), sale(shop, ana, at("2026-03-10T00:00:00Z")))

	list := func(query string) (lines []string, next any) {
		a := w.call(shop, "GET", "/api/v1/goals/progress?partner_id="+ana.String()+query, "")
		if a.status != 200 {
			t.Fatalf("%s: %d %s", query, a.status, a.raw)
		}
		for _, each := range a.body["data"].([]any) {
			m := each.(map[string]any)
			lines = append(lines, fmt.Sprint(m["goal_id"], " ", m["name"], " ", m["metric"], " ", m["period"], " ", m["status"], " ",
				m["progress"], "/", m["target"], " ", m["percent"], "% ", m["reached"], " ", m["rank"]))
		}
		return lines, a.body["next_cursor"]
	}
	want := []string{
		untouched + " Three sales_count total active 0/3 0% false <nil>",
		monthly + " Three sales_amount month active 10/7 142.86% true 2",
		everybodys + " Three sales_count total active 1/3 33.33% false 2",
	}
	if got, next := list(""); !slices.Equal(got, want) || next != nil {
		t.Errorf("the page is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var got []string
	next := any("")
	for query := "&limit=1"; next != nil; query = fmt.Sprintf("&limit=1&cursor=%s", next) {
		var lines []string
		lines, next = list(query)
		got = append(got, lines...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("one by one it is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if a := w.call(shop, "GET", "/api/v1/goals/progress", ""); a.status != 400 || a.body["code"] != "invalid_parameter" || !strings.Contains(a.raw, `"/partner_id"`) {
		t.Errorf("without a partner: %d %s", a.status, a.raw)
	}
}

func TestAPartnersRankIsKnownUntilAThousandAreBetter(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	id := w.goal(shop, "")
	w.exec(`insert into totals (tenant_id, goal_id, partner_id, period_start, progress)
		select tenant_id, goal_id, lpad(to_hex(n), 32, '0')::uuid, starts_at, 10000 - n from goals, generate_series(1, 1002) as n where goal_id = $1`, id)
	for n, want := range map[int]any{1: 1.0, 1001: 1001.0, 1002: nil} {
		partner := uuid.UUID{14: byte(n >> 8), 15: byte(n)}
		if got := rowsOf(t, w.call(shop, "GET", "/api/v1/goals/progress?partner_id="+partner.String(), "").body); got[0].rank != want {
			t.Errorf("the rank of number %d is %v, want %v", n, got[0].rank, want)
		}
		if got := rowsOf(t, w.call(shop, "GET", "/api/v1/goals/"+id+"/progress?partner_id="+partner.String(), "").body); got[0].rank != float64(n) {
			t.Errorf("on the leaderboard number %d has the rank %v", n, got[0].rank)
		}
	}
}
