package goals_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestAGoalAnswersAllItsMembersWithTheirDefaults(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()

	made := w.call(shop, "POST", "/api/v1/goals", `{"name":"Ten","metric":"sales_count","target":1e1,"campaign_id":null}`)

	if made.status != http.StatusCreated {
		t.Fatalf("create: %d %s", made.status, made.raw)
	}
	want := fmt.Sprintf(`{"goal_id":%q,"name":"Ten","metric":"sales_count","target":10,"period":"total","campaign_id":null,"partner_ids":null,`+
		`"timezone":"America/Sao_Paulo","starts_at":%q,"ends_at":null,"reward_brl":null,"status":"active","backfill":null,"created_at":%[2]q}`,
		made.body["goal_id"], made.body["created_at"])
	if made.raw != want {
		t.Errorf("create answers\n%s\nwant\n%s", made.raw, want)
	}
	read := w.call(shop, "GET", "/api/v1/goals/"+strings.ToUpper(made.body["goal_id"].(string)), "")
	if read.status != http.StatusOK || read.raw != made.raw {
		t.Errorf("reading it answers %d\n%s\nwant\n%s", read.status, read.raw, made.raw)
	}
}

func TestAGoalAnswersWhatWasAskedFor(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	partners := ids(2)
	ana, bia := partners[1].String(), partners[0].String()

	made := w.call(shop, "POST", "/api/v1/goals", fmt.Sprintf(`{"name":"Champion","metric":"sales_amount","target":10000.5,"period":"month",
		"campaign_id":"019F60B5-3400-76B2-83C0-D5F35D1B11F9","partner_ids":[%q,%q],"timezone":"Asia/Tokyo",
		"starts_at":"2026-07-01T00:00:00-03:00","ends_at":"2027-01-01T00:00:00Z","reward_brl":250.75,"external_ref":"g"}`, strings.ToUpper(ana), bia))

	want := fmt.Sprintf(`{"goal_id":%q,"name":"Champion","metric":"sales_amount","target":10000.50,"period":"month",`+
		`"campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","partner_ids":[%q,%q],"timezone":"Asia/Tokyo",`+
		`"starts_at":"2026-07-01T03:00:00Z","ends_at":"2027-01-01T00:00:00Z","reward_brl":250.75,"status":"active","backfill":null,"created_at":%q,"idempotent":false}`,
		made.body["goal_id"], ana, bia, made.body["created_at"])
	if made.status != http.StatusCreated || made.raw != want {
		t.Errorf("create answers %d\n%s\nwant\n%s", made.status, made.raw, want)
	}
}

func TestAGoalStartsWithThePresentPeriodOfItsZone(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	for _, zone := range []string{"America/Sao_Paulo", "Pacific/Kiritimati"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for period, first := range map[string]func(time.Time) (time.Month, int){
			"day":     func(now time.Time) (time.Month, int) { return now.Month(), now.Day() },
			"week":    func(now time.Time) (time.Month, int) { return now.Month(), now.Day() - (int(now.Weekday())+6)%7 },
			"month":   func(now time.Time) (time.Month, int) { return now.Month(), 1 },
			"quarter": func(now time.Time) (time.Month, int) { return now.Month() - (now.Month()-1)%3, 1 },
			"year":    func(time.Time) (time.Month, int) { return time.January, 1 },
		} {
			made := w.call(shop, "POST", "/api/v1/goals", goalBody(fmt.Sprintf(`"period":%q,"timezone":%q`, period, zone)))
			local := at(made.body["created_at"].(string)).In(location)
			month, day := first(local)
			want := time.Date(local.Year(), month, day, 0, 0, 0, 0, location)
			if got := at(made.body["starts_at"].(string)); !got.Equal(want) {
				t.Errorf("in %s a goal for each %s starts at %s, want %s", zone, period, got, want)
			}
		}
	}
}

func TestARepeatAnswersTheFirstResultAndNamesWhatDiffers(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.serve()
	partners := ids(2)
	ana, bia := partners[0], partners[1]
	first := fmt.Sprintf(`"partner_ids":[%q,%q],"ends_at":"2999-01-01T00:00:00Z","external_ref":"é"`, ana, bia)
	made := w.call(shop, "POST", "/api/v1/goals", goalBody(first))
	want := strings.Replace(made.raw, `"idempotent":false`, `"idempotent":true`, 1)

	for _, row := range []struct{ name, body, mismatch string }{
		{"the same", goalBody(first), ""},
		{"other spellings", goalBody(fmt.Sprintf(`"target":3.0,"period":"total","timezone":"America/Sao_Paulo","reward_brl":null,"external_ref":"\u00e9",
			"partner_ids":[%q,%q],"ends_at":"2998-12-31T21:00:00-03:00"`, strings.ToUpper(bia.String()), ana)), ""},
		{"another kind of number", goalBody(first + `,"metric":"sales_amount","target":3`), "metric"},
		{"another start", goalBody(first + `,"starts_at":"2026-01-01T00:00:00Z"`), "starts_at"},
		{"all else", `{"name":"Four","metric":"sales_amount","target":4,"period":"month","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9",
			"timezone":"UTC","reward_brl":1,"external_ref":"é"}`, "campaign_id, ends_at, metric, name, partner_ids, period, reward_brl, target, timezone"},
	} {
		repeat := w.call(shop, "POST", "/api/v1/goals", row.body)
		if repeat.status != http.StatusOK || repeat.raw != want {
			t.Errorf("%s: %d\n%s\nwant\n%s", row.name, repeat.status, repeat.raw, want)
		}
		if got := repeat.header.Get("Idempotency-Mismatch"); got != row.mismatch {
			t.Errorf("%s: the mismatch is %q, want %q", row.name, got, row.mismatch)
		}
	}
	for name, a := range map[string]answer{
		"another tenant's":    w.call(other, "POST", "/api/v1/goals", goalBody(first)),
		"a decomposed letter": w.call(shop, "POST", "/api/v1/goals", goalBody(`"external_ref":"e\u0301"`)),
	} {
		if a.status != http.StatusCreated || a.body["goal_id"] == made.body["goal_id"] {
			t.Errorf("%s external_ref answers %d %s", name, a.status, a.raw)
		}
	}
	if invalid := w.call(shop, "POST", "/api/v1/goals", goalBody(`"target":0,"external_ref":"é"`)); invalid.status != http.StatusBadRequest {
		t.Errorf("a known external_ref with an invalid body answers %d %s", invalid.status, invalid.raw)
	}
}

func TestARepeatAfterTheGoalEndedStillAnswers200(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	body := goalBody(fmt.Sprintf(`"ends_at":%q,"external_ref":"brief"`, w.now().Add(time.Hour).UTC().Format(time.RFC3339)))
	if made := w.call(shop, "POST", "/api/v1/goals", body); made.status != http.StatusCreated {
		t.Fatalf("create: %d %s", made.status, made.raw)
	}

	w.ahead.Store(int64(2 * time.Hour))

	if repeat := w.call(shop, "POST", "/api/v1/goals", body); repeat.status != http.StatusOK || repeat.header.Get("Idempotency-Mismatch") != "" {
		t.Errorf("the repeat answers %d %v %s", repeat.status, repeat.header, repeat.raw)
	}
	if other := w.call(shop, "POST", "/api/v1/goals", strings.Replace(body, "brief", "late", 1)); other.status != http.StatusBadRequest {
		t.Errorf("a new goal that has ended already answers %d %s", other.status, other.raw)
	}
}

func TestANewGoalCountsThePastSalesOfItsWindow(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.run()
	ana, bia := uuid.New(), uuid.New()
	today := time.Now().UTC()
	march := sale(shop, ana, at("2026-03-02T12:00:00Z"))
	w.sell(
		sale(shop, ana, at("2026-02-28T12:00:00Z")), march,
		sale(shop, ana, at("2026-04-01T02:00:00Z")), sale(shop, ana, at("2026-04-01T04:00:00Z")),
		sale(shop, ana, today), sale(shop, ana, today), sale(shop, ana, today), sale(shop, bia, today),
		sale(other, ana, today), sale(other, ana, today),
	)

	monthly := w.goal(shop, `"target":2,"period":"month","starts_at":"2026-03-01T03:00:00Z"`)
	ofBia := w.goal(shop, fmt.Sprintf(`"metric":"sales_amount","target":10,"starts_at":"2026-01-01T00:00:00Z","partner_ids":[%q]`, bia))
	w.goal(shop, `"metric":"sales_amount","target":1`) // from now on
	w.goal(shop, `"starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-04-01T04:00:00Z"`)
	w.goal(shop, fmt.Sprintf(`"starts_at":"2026-01-01T00:00:00Z","campaign_id":%q`, march.Data.CampaignID))

	w.assertTotals()
	if got, want := w.board(shop, monthly, "?period_start=2026-03-01T03:00:00Z"), ana.String()+" 2 100% false #1"; got != want {
		t.Errorf("March is %q, want %q", got, want)
	}
	told := w.reached()
	if len(told) != 2 {
		t.Fatalf("%d goals are told of, want 2: %+v", len(told), told)
	}
	for _, e := range told {
		switch id := e.GoalID.String(); {
		case id == monthly && e.PartnerID == ana && e.Progress.Value == 3:
		case id == ofBia && e.PartnerID == bia && e.Progress.String() == "10.00":
		default:
			t.Errorf("told of %+v", e)
		}
	}
}

func TestAPeriodThatWasOverBeforeTheGoalIsNeverReached(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.run()
	ana := uuid.New()
	w.sell(sale(shop, ana, at("2026-03-02T12:00:00Z")))
	w.goal(shop, `"target":1,"period":"month","starts_at":"2026-03-01T03:00:00Z"`)
	w.goal(shop, `"target":2,"starts_at":"2026-03-01T00:00:00Z","ends_at":"2026-05-01T00:00:00Z"`)
	justOver := w.now().Add(-time.Minute).UTC().Format(time.RFC3339)
	w.goal(other, fmt.Sprintf(`"target":3,"period":"month","starts_at":"2026-01-01T00:00:00Z","ends_at":%q`, justOver))

	anHourAgo := w.now().Add(-time.Hour)
	w.sell(sale(other, ana, anHourAgo), sale(other, ana, anHourAgo), sale(other, ana, anHourAgo))
	w.sell(sale(shop, ana, at("2026-03-03T12:00:00Z")), sale(shop, ana, at("2026-04-03T12:00:00Z"))) // heard of late

	if told := w.reached(); len(told) != 0 {
		t.Errorf("told of %+v", told)
	}
	if reached := w.rows("select partner_id::text from reached"); len(reached) != 0 {
		t.Errorf("%d periods are marked as reached", len(reached))
	}
	w.assertTotals()
}

func TestGoalsAreListedNewestFirstInPagesThatFit(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.serve()
	var want []string
	for range 5 {
		want = append([]string{w.goal(shop, "")}, want...)
	}
	w.goal(other, "")

	var got []string
	path := "/api/v1/goals?limit=2"
	for pages := 0; pages < 5; pages++ {
		page := w.call(shop, "GET", path, "")
		for _, row := range page.body["data"].([]any) {
			got = append(got, row.(map[string]any)["goal_id"].(string))
		}
		cursor, more := page.body["next_cursor"].(string)
		if !more {
			break
		}
		w.goal(shop, "") // does not disturb the pages that follow
		path = "/api/v1/goals?limit=2&cursor=" + cursor
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the pages list\n%v\nwant\n%v", got, want)
	}
}
