package sales

import "testing"

// exec changes the database by hand.
func (f *fixture) exec(statement string, arguments ...any) {
	f.t.Helper()
	if _, err := f.deps.Pool.Exec(f.t.Context(), statement, arguments...); err != nil {
		f.t.Fatal(err)
	}
}

// goesBack has the tenant's catalogue be older than whatever a replica remembers.
func (f *fixture) goesBack() {
	f.t.Helper()
	f.exec(`update tenants set catalogue_version = 1 where tenant_id = $1`, f.tenant)
}

// A standby that lacks the last commits is promoted, or a backup is restored, under a
// replica that remembers more than there is now.
func TestSalesGoOnWhereTheDatabaseHasGoneBackInTime(t *testing.T) {
	t.Parallel()
	here := start(t, nowhere)
	there := here.replica()
	for name, report := range map[string]func(f *fixture) *response{
		"by a partner who is not remembered": func(f *fixture) *response {
			f.goesBack()
			partner := f.post("/api/v1/partners", `{"name":"x","referral_code":"new"}`).want(201).text("partner_id")
			f.call("PUT", "/api/v1/campaigns/"+f.campaign+"/partners/"+partner, "").want(204)
			return f.post("/api/v1/sales", f.sale("second", "referral_code", `"new"`, "sold_at", `"2026-01-01T00:00:00Z"`))
		},
		"with a key that is not remembered": func(f *fixture) *response {
			made := f.at(there).post("/api/v1/api-keys", `{"name":"x"}`).want(201)
			f.goesBack()
			return f.with(made.text("api_key")).post("/api/v1/sales", f.sale("second", "sold_at", `"2026-01-01T00:00:00Z"`))
		},
		"on terms that are remembered otherwise": func(f *fixture) *response {
			f.exec(`update campaigns set ends_at = null where tenant_id = $1`, f.tenant)
			f.goesBack()
			return f.post("/api/v1/sales", f.sale("second", "sold_at", `"2026-02-01T00:00:00Z"`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := here.in(t).stranger()
			f.patch("/api/v1/campaigns/"+f.campaign, `{"ends_at":"2026-01-31T00:00:00Z"}`).want(200)
			f.sell("first", "sold_at", `"2026-01-01T00:00:00Z"`)
			report(f).want(201)
		})
	}
}
