package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/webhook"
)

// caller calls the platform at the edge with one token.
type caller struct{ base, token string }

type object = map[string]any

var patient = &http.Client{Timeout: 40 * time.Second}

// call returns the status of the answer, 0 where there is none, and its body.
func (c caller) call(method, path string, body any) (status int, answer []byte) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	request, err := http.NewRequest(method, c.base+path, bytes.NewReader(raw))
	if err != nil {
		return 0, []byte(err.Error())
	}
	if body == nil {
		request.Body, request.ContentLength = nil, 0
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := patient.Do(request)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return response.StatusCode, answer
}

// must is call for what has to be answered so; it reads the answer into into, unless nil.
func (c caller) must(t *testing.T, want int, method, path string, body, into any) {
	t.Helper()
	status, answer := c.call(method, path, body)
	if status != want {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, answer)
	}
}

// shop is a tenant with all that a sale needs and a server that hears of commissions.
type shop struct {
	caller
	receiver   string // its URL on this machine
	TenantID   string `json:"tenant_id"`
	Key        string `json:"api_key"`
	PartnerID  string `json:"partner_id"`
	CampaignID string `json:"campaign_id"`
	PlanID     string `json:"plan_id"`
	Secret     string `json:"secret"`
}

func openShop(t *testing.T, s stack, base string) *shop {
	t.Helper()
	operator := caller{base, secret(t, s, "ADMIN_TOKEN")}
	shop := &shop{receiver: s.at(t, "receiver", "8080")}
	operator.must(t, 201, "POST", "/admin/v1/tenants", object{"name": "Loja"}, shop)
	operator.must(t, 201, "POST", "/admin/v1/tenants/"+shop.TenantID+"/api-keys", object{"name": "first"}, shop)
	shop.caller = caller{base, shop.Key}
	shop.must(t, 201, "POST", "/api/v1/partners", object{"name": "Ana", "referral_code": "ana"}, shop)
	shop.must(t, 201, "POST", "/api/v1/campaigns", object{"name": "Lançamento"}, shop)
	shop.must(t, 201, "POST", "/api/v1/campaigns/"+shop.CampaignID+"/plans", object{"name": "Dez", "commission_pct": 10}, shop)
	shop.must(t, 204, "PUT", "/api/v1/campaigns/"+shop.CampaignID+"/partners/"+shop.PartnerID, nil, nil)
	for _, path := range []string{"/api/v1/commissions", "/api/v1/goals", "/api/v1/webhook-endpoints"} {
		testkit.Eventually(t, soon, path+" knows the key", func() bool {
			status, _ := shop.call("GET", path, nil)
			return status == 200
		})
	}
	endpoint := object{"url": "http://receiver:8080/hook", "events": []string{"commission.available"}}
	shop.must(t, 201, "POST", "/api/v1/webhook-endpoints", endpoint, shop)
	return shop
}

// secret is a value of the file that docker compose reads.
func secret(t *testing.T, s stack, name string) string {
	t.Helper()
	text, err := os.ReadFile(s.secrets)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	t.Fatalf("%s has no %s", s.secrets, name)
	return ""
}

// receipt is what a report is answered.
type receipt struct {
	SaleID       string `json:"sale_id"`
	CommissionID string `json:"commission_id"`
}

// report reports a sale of 100.50 and says how it was answered.
func (s *shop) report(ref string) (status int, r receipt) {
	status, answer := s.call("POST", "/api/v1/sales", object{
		"referral_code": "ana", "campaign_id": s.CampaignID, "plan_id": s.PlanID,
		"amount_brl": json.Number("100.50"), "external_ref": ref,
	})
	_ = json.Unmarshal(answer, &r) // what is no receipt has no ids, which is seen below
	return status, r
}

// heard counts the webhooks of each sale, all of which must be signed.
func (s *shop) heard(t *testing.T) map[string]int {
	t.Helper()
	var all []struct{ Signature, Body string }
	caller{base: s.receiver}.must(t, 200, "GET", "/heard", nil, &all)
	times := map[string]int{}
	for _, one := range all {
		if err := webhook.Verify(s.Secret, []byte(one.Body), http.Header{"X-Service-Signature": {one.Signature}}); err != nil {
			t.Fatalf("a webhook is not genuine: %v: %s", err, one.Body)
		}
		event, err := webhook.Parse([]byte(one.Body))
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			SaleID string `json:"source_sale_id"`
		}
		if err := json.Unmarshal(event.Data, &data); err != nil {
			t.Fatal(err)
		}
		times[data.SaleID]++
	}
	return times
}

// each returns an element of every page of a list.
func each[T any](t *testing.T, s *shop, path string) (all []T) {
	t.Helper()
	for cursor := ""; ; {
		var page struct {
			Data []T     `json:"data"`
			Next *string `json:"next_cursor"`
		}
		s.must(t, 200, "GET", fmt.Sprintf("%s?limit=100%s", path, cursor), nil, &page)
		all = append(all, page.Data...)
		if page.Next == nil {
			return all
		}
		cursor = "&cursor=" + *page.Next
	}
}
