package sales

import (
	"testing"

	"github.com/google/uuid"
)

func TestACampaignIsMadeReadAndChanged(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	made := f.post("/api/v1/campaigns", `{"name":"Inverno","status":"draft","starts_at":"2026-07-01T00:00:00-03:00","ends_at":"2026-10-01T00:00:00-03:00"}`).want(201).
		shows("name", "Inverno", "status", "draft", "starts_at", "2026-07-01T03:00:00Z", "ends_at", "2026-10-01T03:00:00Z")
	address := "/api/v1/campaigns/" + made.text("campaign_id")
	if read := f.get(address).want(200); string(read.raw) != string(made.raw) {
		t.Errorf("made as %s, read as %s", made.raw, read.raw)
	}
	f.patch(address, `{"starts_at":null}`).want(200).shows("starts_at", "<nil>", "ends_at", "2026-10-01T03:00:00Z", "name", "Inverno")
	f.patch(address, `{"ends_at":null,"starts_at":"2026-08-01T00:00:00Z"}`).want(200).shows("starts_at", "2026-08-01T00:00:00Z", "ends_at", "<nil>")
	f.patch(address, `{"name":"Frio"}`).want(200).shows("name", "Frio", "starts_at", "2026-08-01T00:00:00Z", "ends_at", "<nil>", "status", "draft")
	f.get(address).want(200).shows("name", "Frio", "starts_at", "2026-08-01T00:00:00Z", "ends_at", "<nil>", "status", "draft")
	f.post("/api/v1/campaigns", `{"name":"x","status":null,"starts_at":null,"ends_at":null,"external_ref":null}`).want(201).shows("status", "active", "starts_at", "<nil>")
	f.recordsNothing(func() {
		f.patch(address, `{}`).refused(400, "invalid_body")
		f.patch(address, `{"name":null}`).refused(400, "invalid_body")
		f.patch("/api/v1/campaigns/"+uuid.NewString(), `{"name":"x"}`).refused(404, "not_found")
		f.get("/api/v1/campaigns/"+uuid.NewString()).refused(404, "not_found")
		f.get("/api/v1/campaigns/"+f.campaign[1:]).refused(400, "invalid_parameter")
		f.post("/api/v1/campaigns", `{"name":"x","status":"open"}`).refused(400, "invalid_body")
		f.post("/api/v1/campaigns", `{"nome":"x"}`).invalid("/name required", "/nome unknown_member")
	})
}

func TestACampaignEndsAfterItStarts(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	address := "/api/v1/campaigns/" + f.post("/api/v1/campaigns", `{"name":"x","starts_at":"2026-07-01T00:00:00Z","ends_at":"2026-08-01T00:00:00Z"}`).want(201).text("campaign_id")
	f.recordsNothing(func() {
		f.post("/api/v1/campaigns", `{"name":"x","starts_at":"2026-07-01T00:00:00Z","ends_at":"2026-07-01T00:00:00Z"}`).invalid("/ends_at too_small")
		f.post("/api/v1/campaigns", `{"name":"x","starts_at":"2026-07-01T00:00:00Z","ends_at":"2026-06-30T23:00:00Z"}`).invalid("/ends_at too_small")
		f.patch(address, `{"ends_at":"2026-07-01T00:00:00Z"}`).invalid("/ends_at too_small")
		f.patch(address, `{"starts_at":"2026-08-01T00:00:00Z"}`).invalid("/ends_at too_small")
	})
	f.patch(address, `{"starts_at":"2026-08-01T00:00:00Z","ends_at":"2026-08-01T00:00:00.000001Z"}`).want(200)
}

func TestOnlyTheTransitionsOfACampaignThatAreAllowedHappen(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	checkTransitions(t, f, "/api/v1/campaigns", "campaign_id",
		func(status string) string { return `{"name":"x","status":"` + status + `"}` },
		[]string{"draft", "active", "paused", "ended"},
		map[string]string{"draft": "active", "active": "paused ended", "paused": "active ended", "ended": ""})
}
