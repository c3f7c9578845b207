package sales

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestAPartnerIsMadeReadAndChanged(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	made := f.post("/api/v1/partners", `{"name":"Rui Lima","referral_code":"Rui_1.a-B","email":"rui@example.com","status":"pending"}`).want(201).
		shows("name", "Rui Lima", "referral_code", "Rui_1.a-B", "email", "rui@example.com", "status", "pending")
	if _, shown := made.object()["idempotent"]; shown {
		t.Errorf("idempotent is shown without an external_ref: %s", made.raw)
	}
	address := "/api/v1/partners/" + made.text("partner_id")
	if read := f.get(address).want(200); string(read.raw) != string(made.raw) {
		t.Errorf("made as %s, read as %s", made.raw, read.raw)
	}
	f.get("/api/v1/partners/" + strings.ToUpper(made.text("partner_id"))).want(200)
	f.patch(address, `{"name":"Rui L.","email":null}`).want(200).shows("name", "Rui L.", "email", "<nil>", "status", "pending", "referral_code", "Rui_1.a-B")
	f.patch(address, `{"email":"rui@example.org"}`).want(200).shows("name", "Rui L.", "email", "rui@example.org")
	f.get(address).want(200).shows("name", "Rui L.", "email", "rui@example.org", "created_at", made.text("created_at"))
	f.recordsNothing(func() {
		f.patch(address, `{}`).refused(400, "invalid_body")
		f.patch(address, `{"referral_code":"other"}`).invalid("/referral_code unknown_member")
		f.patch(address, `{"nmae":"x"}`).invalid("/nmae unknown_member")
		f.patch("/api/v1/partners/"+uuid.NewString(), `{"name":"x"}`).refused(404, "not_found")
		f.patch("/api/v1/partners/x", `{"name":"x"}`).refused(400, "invalid_parameter")
		f.get("/api/v1/partners/"+uuid.NewString()).refused(404, "not_found")
	})
}

func TestAPartnerThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.recordsNothing(func() {
		f.post("/api/v1/partners", `{}`).invalid("/name required", "/referral_code required")
		f.post("/api/v1/partners", `{"name":"","referral_code":""}`).refused(400, "invalid_body")
		f.post("/api/v1/partners", `{"name":"x","referral_code":"`+strings.Repeat("r", 65)+`"}`).invalid("/referral_code too_long")
		for _, code := range []string{"a b", "é", "a/b", "a\\n", "a+b"} {
			f.post("/api/v1/partners", `{"name":"x","referral_code":"`+code+`"}`).refused(400, "invalid_body")
		}
		f.post("/api/v1/partners", `{"name":"x","referral_code":"r","status":"asleep"}`).refused(400, "invalid_body")
		f.post("/api/v1/partners", `{"name":"x","referral_code":"r","email":"nowhere"}`).refused(400, "invalid_body")
		f.post("/api/v1/partners", `{"name":"x","referral_code":"r","tenant_id":"`+f.tenant+`"}`).invalid("/tenant_id unknown_member")
	})
}

func TestAReferralCodeIsTakenOnceInATenant(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.recordsNothing(func() {
		taken := f.post("/api/v1/partners", `{"name":"x","referral_code":"ana.souza"}`).refused(409, "conflict")
		if !strings.Contains(taken.text("message"), "referral_code") || !strings.Contains(taken.text("details"), "/referral_code") {
			t.Errorf("the refusal does not name the member: %s", taken.raw)
		}
		f.post("/api/v1/partners", `{"name":"x","referral_code":"ana.souza","external_ref":"crm-9"}`).refused(409, "conflict")
	})
	f.post("/api/v1/partners", `{"name":"x","referral_code":"ANA.SOUZA"}`).want(201)
	f.post("/api/v1/partners", `{"name":"x","referral_code":"free","external_ref":"crm-9"}`).want(201) // the refused call did not use it up
	other := f.stranger()
	other.post("/api/v1/partners", `{"name":"x","referral_code":"ana.souza"}`).want(201)
}

func TestOnlyTheTransitionsOfAPartnerThatAreAllowedHappen(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	checkTransitions(t, f, "/api/v1/partners", "partner_id",
		func(status string) string {
			return `{"name":"x","referral_code":"` + uuid.NewString() + `","status":"` + status + `"}`
		},
		[]string{"pending", "active", "suspended", "banned"},
		map[string]string{"pending": "active banned", "active": "suspended banned", "suspended": "active banned", "banned": ""})
}

// checkTransitions tries every change of state, each on a resource of its own. What is
// not in allowed is refused, except a change to the same state, which changes nothing.
func checkTransitions(t *testing.T, f *fixture, list, id string, body func(status string) string, states []string, allowed map[string]string) {
	t.Helper()
	for _, from := range states {
		for _, to := range states {
			address := list + "/" + f.post(list, body(from)).want(201).text(id)
			if from == to || strings.Contains(allowed[from], to) {
				f.patch(address, `{"status":"`+to+`"}`).want(200).shows("status", to)
				f.get(address).want(200).shows("status", to)
				continue
			}
			f.recordsNothing(func() {
				f.patch(address, `{"status":"`+to+`","name":"changed"}`).refused(409, "invalid_transition")
			})
		}
	}
}

func TestEveryChangeOfAPartnerIsToldToTheOtherServices(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.patch("/api/v1/partners/"+f.partner, `{"status":"suspended"}`).want(200)
	f.patch("/api/v1/partners/"+f.partner, `{"name":"Ana S."}`).want(200)
	rows, err := f.deps.Pool.Query(t.Context(), `
		select convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'version', convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'status',
		       convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'name', convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'partner_id'
		from outbox where name = 'partner.changed' order by created_at`)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for rows.Next() {
		var version, status, name, id string
		if err := rows.Scan(&version, &status, &name, &id); err != nil {
			t.Fatal(err)
		}
		told = append(told, strings.Join([]string{version, status, name, id}, " "))
	}
	want := "1 suspended Ana " + f.partner + "\n2 suspended Ana S. " + f.partner
	if got := strings.Join(told, "\n"); got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
}
