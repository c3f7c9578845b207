package sales

import (
	"testing"

	"github.com/google/uuid"
)

func TestAPlanIsMadeReadAndChanged(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	plans := "/api/v1/campaigns/" + f.campaign + "/plans"
	made := f.post(plans, `{"name":"Ouro","commission_pct":12.5,"conversion_amount_brl":4.75,"hold_days":14}`).want(201).
		shows("name", "Ouro", "commission_pct", "12.5", "conversion_amount_brl", "4.75", "hold_days", "14", "campaign_id", f.campaign)
	address := "/api/v1/plans/" + made.text("plan_id")
	if read := f.get(address).want(200); string(read.raw) != string(made.raw) {
		t.Errorf("made as %s, read as %s", made.raw, read.raw)
	}
	f.patch(address, `{"conversion_amount_brl":null}`).want(200).shows("conversion_amount_brl", "<nil>", "commission_pct", "12.5", "hold_days", "14", "name", "Ouro")
	f.patch(address, `{"commission_pct":0,"hold_days":0}`).want(200).shows("conversion_amount_brl", "<nil>", "commission_pct", "0", "hold_days", "0")
	f.patch(address, `{"name":"Prata","commission_pct":99.9999,"conversion_amount_brl":1e1,"hold_days":3.65e2}`).want(200)
	f.get(address).want(200).shows("name", "Prata", "commission_pct", "99.9999", "conversion_amount_brl", "10.00", "hold_days", "365", "created_at", made.text("created_at"))
	f.post(plans, `{"name":"x","commission_pct":100,"hold_days":null,"conversion_amount_brl":null}`).want(201).shows("commission_pct", "100", "hold_days", "0")
	f.recordsNothing(func() {
		for _, pct := range []string{"-1", "100.0001", "0.00001", `"5"`, "null", "1E1000000000", "1e-1000000000"} {
			f.post(plans, `{"name":"x","commission_pct":`+pct+`}`).refused(400, "invalid_body")
		}
		for _, member := range []string{`"hold_days":-1`, `"hold_days":366`, `"hold_days":1.5`, `"conversion_amount_brl":0`, `"conversion_amount_brl":0.001`} {
			f.post(plans, `{"name":"x","commission_pct":5,`+member+`}`).refused(400, "invalid_body")
			f.patch(address, `{`+member+`}`).refused(400, "invalid_body")
		}
		f.patch(address, `{"campaign_id":"`+f.campaign+`"}`).invalid("/campaign_id unknown_member")
		f.post("/api/v1/campaigns/"+uuid.NewString()+"/plans", `{"name":"x","commission_pct":5}`).refused(404, "not_found")
		f.patch("/api/v1/plans/"+uuid.NewString(), `{"name":"x"}`).refused(404, "not_found")
		f.get("/api/v1/plans/"+uuid.NewString()).refused(404, "not_found")
		f.get("/api/v1/campaigns/"+uuid.NewString()+"/plans").refused(404, "not_found")
	})
}

func TestAChangeOfAPlanNeverTouchesPastSales(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	before := f.post("/api/v1/sales", f.sale("before")).want(201)
	f.patch("/api/v1/plans/"+f.plan, `{"commission_pct":7.5,"hold_days":30}`).want(200)
	f.post("/api/v1/sales", f.sale("after")).want(201).shows("commission_amount_brl", "7.54")
	f.get("/api/v1/sales/"+before.text("sale_id")).want(200).shows("commission_amount_brl", "5.03", "commission_pct", "5")
}
