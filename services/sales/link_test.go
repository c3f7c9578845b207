package sales

import (
	"testing"

	"github.com/google/uuid"
)

func TestALinkCanBeMadeAndCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	list := "/api/v1/campaigns/" + f.campaign + "/partners"
	linked := func() int { return len(f.get(list).want(200).object()["data"].([]any)) }
	f.recordsNothing(func() { f.call("PUT", f.link, "").want(204) })
	if n := linked(); n != 1 {
		t.Errorf("%d partners are linked, want 1", n)
	}
	f.call("DELETE", f.link, "").want(204)
	f.call("DELETE", f.link, "").want(204)
	if n := linked(); n != 0 {
		t.Errorf("%d partners are linked, want none", n)
	}
	f.call("PUT", f.link, "").want(204)
	f.post("/api/v1/sales", f.sale("order-1")).want(201)
	f.recordsNothing(func() {
		for _, address := range []string{list + "/" + uuid.NewString(), "/api/v1/campaigns/" + uuid.NewString() + "/partners/" + f.partner} {
			f.call("PUT", address, "").refused(404, "not_found")
			f.call("DELETE", address, "").refused(404, "not_found")
		}
		f.call("PUT", list+"/x", "").refused(400, "invalid_parameter")
		f.get("/api/v1/campaigns/"+uuid.NewString()+"/partners").refused(404, "not_found")
	})
}
