package sales

import "testing"

func TestTheUseOfAKeyDoesNotWaitForTheStandby(t *testing.T) {
	t.Parallel()
	f, standby := startWithStandby(t)
	key := f.admin("POST", "/admin/v1/tenants/"+f.tenant+"/api-keys", `{"name":"unused"}`).want(201).text("api_key")
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	f.with(key).get("/api/v1/partners").want(200)
	if n := f.rows("api_keys where name = 'unused' and last_used_at is not null"); n != 1 {
		t.Error("its use is not noted")
	}
	f.post("/api/v1/partners", `{"name":"Bia","referral_code":"bia"}`).want(503) // it would not outlast the primary
}
