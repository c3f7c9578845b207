package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/deploy/local/stack"
	"partilha.dev/pkg/testkit"
	salesservice "partilha.dev/services/sales"
)

// onePort is Partilha as the local stack runs it: one process at one address.
type onePort struct{ *stack.Stack }

func (o onePort) BaseFor(string) string { return o.URL }
func (o onePort) OperatorToken() string { return o.AdminToken }

func startStack(t *testing.T) onePort {
	t.Helper()
	folder, err := os.MkdirTemp("", "partilha-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o711); err != nil { // PostgreSQL does not run as root and must get in
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), stack.Options{
		Addr: "127.0.0.1:0", DataDir: folder, Sales: salesservice.Config{AdminToken: stage.AdminToken},
		PostgresSettings: map[string]string{"fsync": "off"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return onePort{s}
}

func TestOneSaleGoesAllTheWay(t *testing.T) {
	t.Parallel()
	t.Run("through four processes", func(t *testing.T) { goAllTheWay(t, stage.StartPlatform(t)) })
	t.Run("through one process", func(t *testing.T) { goAllTheWay(t, startStack(t)) })
}

func goAllTheWay(t *testing.T, s stage.System) {
	shop := stage.OpenShop(t, s)
	sold := shop.Sell(t, "order-1")
	if sold.CommissionAmount != "5.03" || sold.Idempotent {
		t.Errorf("100.50 at 5%% is answered %+v, want a commission of 5.03", sold)
	}

	commission := stage.Answer{}
	testkit.Eventually(t, stage.Soon, "the commission can be read", func() bool {
		commission = shop.Call(t, "GET", "/api/v1/commissions/"+sold.CommissionID, nil)
		return commission.Status == 200
	})
	var told struct {
		stage.Receipt
		SourceSaleID string      `json:"source_sale_id"`
		PartnerID    string      `json:"partner_id"`
		Base         json.Number `json:"base_amount_brl"`
	}
	commission.Into(t, &told)
	if told.CommissionID != sold.CommissionID || told.CommissionAmount != sold.CommissionAmount ||
		told.SourceSaleID != sold.SaleID || told.PartnerID != shop.PartnerID || told.Base != "100.50" {
		t.Errorf("the sale answered %+v, its commission is %s", sold, commission.Body)
	}

	testkit.Eventually(t, stage.Soon, "the goal counts the sale", func() bool { return shop.Progress(t) == 1 })

	testkit.Eventually(t, stage.Soon, "the webhook comes", func() bool { return len(shop.Receiver.Of("commission.available")) == 1 })
	heard := shop.Receiver.Of("commission.available")[0]
	for member, want := range map[string]string{
		"commission_id": sold.CommissionID, "partner_id": shop.PartnerID, "source_sale_id": sold.SaleID,
	} {
		if got := strings.Trim(string(heard.Data[member]), `"`); got != want {
			t.Errorf("the webhook's %s is %s, want %s", member, got, want)
		}
	}
	if amount := string(heard.Data["amount_brl"]); amount != "5.03" || heard.Tenant != shop.TenantID {
		t.Errorf("the webhook says %s", heard.Body)
	}
	var delivery struct {
		Data []struct {
			EventID string `json:"event_id"`
			Status  string
		}
	}
	testkit.Eventually(t, stage.Soon, "the delivery is recorded", func() bool {
		shop.Must(t, 200, "GET", "/api/v1/webhook-deliveries?endpoint_id="+shop.EndpointID, nil).Into(t, &delivery)
		delivered := 0
		for _, d := range delivery.Data {
			if d.Status == "delivered" {
				delivered++
			}
		}
		return delivered == 2 // of the sale and of its commission
	})
	shop.Receiver.AssertOnce(t)
}

// visit is one call of the tour. A {name} in it stands for the text of that name in the
// latest answer that had one; until is what the body must come to contain.
type visit struct {
	as                         string // operator, nobody, or the tenant
	method, path, body, header string
	until                      string
}

// tour calls every endpoint, for what it answers and for what it refuses.
var tour = []visit{
	{"operator", "POST", "/admin/v1/tenants", `{"name":"Loja"}`, "", ""},
	{"operator", "POST", "/admin/v1/tenants/{tenant_id}/api-keys", `{"name":"first"}`, "", ""},
	{"operator", "GET", "/admin/v1/tenants?limit=1", "", "", ""},
	{"nobody", "GET", "/api/v1/sales", "", "", ""},
	{"tenant", "GET", "/api/v1/commissions", "", "", `"data"`},
	{"tenant", "GET", "/api/v1/goals", "", "", `"data"`},
	{"tenant", "GET", "/api/v1/webhook-endpoints", "", "", `"data"`},
	{"tenant", "POST", "/api/v1/partners", `{"name":"Ana","referral_code":"ana","external_ref":"p"}`, "", ""},
	{"tenant", "POST", "/api/v1/partners", `{"name":"Bia","referral_code":"ana","external_ref":"p"}`, "", ""},
	{"tenant", "POST", "/api/v1/partners", `{"name":"Bia","referral_code":"ana"}`, "", ""},
	{"tenant", "POST", "/api/v1/partners", `{"nome":"Bia"}`, "", ""},
	{"tenant", "GET", "/api/v1/partners/{partner_id}", "", "", ""},
	{"tenant", "PATCH", "/api/v1/partners/{partner_id}", `{"name":"Ana Lima"}`, "", ""},
	{"tenant", "POST", "/api/v1/campaigns", `{"name":"Lançamento"}`, "", ""},
	{"tenant", "POST", "/api/v1/campaigns/{campaign_id}/plans", `{"name":"Cinco","commission_pct":5}`, "", ""},
	{"tenant", "PUT", "/api/v1/campaigns/{campaign_id}/partners/{partner_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/campaigns/{campaign_id}/partners", "", "", ""},
	{"tenant", "POST", "/api/v1/goals", `{"name":"Uma","metric":"sales_count","target":1,"reward_brl":10,"external_ref":"g"}`, "", ""},
	{"tenant", "POST", "/api/v1/goals", `{"name":"Uma","metric":"sales_count","target":2,"external_ref":"g"}`, "", ""},
	{"tenant", "POST", "/api/v1/webhook-endpoints", `{"url":"{receiver}","events":["*"]}`, "", ""},
	{"tenant", "POST", "/api/v1/webhook-endpoints", `{"url":"ftp://10.0.0.1:22/","events":[]}`, "", ""},
	{"tenant", "POST", "/api/v1/sales", `{"referral_code":"ana","campaign_id":"{campaign_id}","plan_id":"{plan_id}","amount_brl":100.50,"external_ref":"o"}`, "", ""},
	{"tenant", "POST", "/api/v1/sales", `{"referral_code":"ana","campaign_id":"{campaign_id}","plan_id":"{plan_id}","amount_brl":1e2,"external_ref":"o"}`, "", ""},
	{"tenant", "POST", "/api/v1/sales", `{"referral_code":"eva","campaign_id":"{campaign_id}","plan_id":"{plan_id}","amount_brl":1,"external_ref":"x"}`, "", ""},
	{"tenant", "POST", "/api/v1/sales", `{"referral_code":"ana","campaign_id":"{partner_id}","plan_id":"{plan_id}","amount_brl":1,"external_ref":"x"}`, "", ""},
	{"tenant", "POST", "/api/v1/sales", `{"amount_brl":10.555}`, "", ""},
	{"tenant", "POST", "/api/v1/sales", `{}`, "Content-Type: text/xml", ""},
	{"tenant", "GET", "/api/v1/sales/{sale_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/commissions/{commission_id}", "", "", `"available"`},
	{"tenant", "GET", "/api/v1/goals/{goal_id}/progress", "", "", `"reached":true`},
	{"tenant", "GET", "/api/v1/commissions?status=available&created_from=2026-01-01T00:00:00Z", "", "", `"bonus"`},
	{"tenant", "GET", "/api/v1/balances", "", "", `"available_brl":15.03`},
	{"tenant", "GET", "/api/v1/balances/{partner_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/balances/{goal_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/statements/{partner_id}", "", "", `"closing":{"balance_brl":15.03`},
	{"tenant", "GET", "/api/v1/statements/{goal_id}?from=now", "", "", ""},
	{"tenant", "GET", "/api/v1/ledger/verify", "", "", `"ok":true`},
	{"tenant", "GET", "/api/v1/webhook-deliveries?endpoint_id={endpoint_id}", "", "", `"delivered"`},
	{"tenant", "POST", "/api/v1/conversions", `{"referral_code":"ana","campaign_id":"{campaign_id}","plan_id":"{plan_id}","external_ref":"o"}`, "", ""},
	{"tenant", "POST", "/api/v1/conversions", `{"referral_code":"ana","campaign_id":"{campaign_id}","type":"signup","external_ref":"o"}`, "", ""},
	{"tenant", "POST", "/api/v1/conversions", `{"referral_code":"eva","campaign_id":"{campaign_id}","external_ref":"x"}`, "", ""},
	{"tenant", "POST", "/api/v1/conversions", `{"type":"sale"}`, "", ""},
	{"tenant", "GET", "/api/v1/conversions/{conversion_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/conversions?type=lead", "", "", `"data"`},
	{"tenant", "GET", "/api/v1/conversions/{plan_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/webhook-deliveries?endpoint_id={endpoint_id}", "", "", `"delivered".*"delivered"`},
	{"tenant", "GET", "/api/v1/webhook-deliveries?wrong=1", "", "", ""},
	{"tenant", "GET", "/api/v1/sales/{plan_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/commissions/{plan_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/commissions?limit=101", "", "", ""},
	{"tenant", "GET", "/api/v1/goals/{plan_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/webhook-deliveries/{plan_id}", "", "", ""},
	{"tenant", "POST", "/api/v1/sales/{sale_id}/refunds", `{"amount_brl":50.25,"external_ref":"r"}`, "", ""},
	{"tenant", "POST", "/api/v1/sales/{sale_id}/refunds", `{"amount_brl":50,"external_ref":"r"}`, "", ""},
	{"tenant", "POST", "/api/v1/sales/{sale_id}/refunds", `{"amount_brl":50.26,"external_ref":"x"}`, "", ""},
	{"tenant", "POST", "/api/v1/sales/{plan_id}/refunds", `{"amount_brl":1,"external_ref":"x"}`, "", ""},
	{"tenant", "GET", "/api/v1/sales/{sale_id}/refunds", "", "", ""},
	{"tenant", "GET", "/api/v1/sales?sold_from=2026-01-01T00:00:00Z", "", "", `"refunded_total_brl":50.25`},
	{"tenant", "DELETE", "/api/v1/sales", "", "", ""},
	{"tenant", "PUT", "/api/v1/goals", "", "", ""},
	{"tenant", "GET", "/api/v1/nothing", "", "", ""},
	{"tenant", "DELETE", "/api/v1/webhook-endpoints/{endpoint_id}", "", "", ""},
	{"tenant", "GET", "/api/v1/webhook-endpoints/{endpoint_id}", "", "", ""},
}

func TestFourProcessesAnswerAsOneProcessDoes(t *testing.T) {
	t.Parallel()
	apart := travel(t, stage.StartPlatform(t))
	together := travel(t, startStack(t))
	for i, seen := range apart {
		if i < len(together) && seen != together[i] {
			t.Errorf("four processes answer\n%s\none process answers\n%s", seen, together[i])
		}
	}
	if len(apart) != len(together) {
		t.Errorf("four processes gave %d answers, one process %d", len(apart), len(together))
	}
}

// travel takes the tour and returns every answer and every webhook as a text, in which
// nothing is left that differs by chance.
func travel(t *testing.T, s stage.System) (seen []string) {
	t.Helper()
	r := stage.NewReceiver(t)
	known := map[string]string{"receiver": r.URL}
	plain := &plainer{receiver: r.URL}
	for _, v := range tour {
		got := v.call(t, s, known)
		var members map[string]json.RawMessage
		if json.Unmarshal(got.Body, &members) == nil {
			for name := range members {
				if text := got.Text(name); text != "" {
					known[name] = text
				}
			}
		}
		r.Trust(known["secret"])
		seen = append(seen, plain.text(fmt.Sprintf("%s %s %s: %d %s\n%s", v.as, v.method, v.path, got.Status, headersOf(got), got.Body)))
	}
	for _, event := range []string{"commission.available", "conversion.recorded"} {
		for _, w := range r.Of(event) {
			seen = append(seen, plain.text(string(w.Body)))
		}
	}
	r.AssertOnce(t)
	return seen
}

func (v visit) call(t *testing.T, s stage.System, known map[string]string) (got stage.Answer) {
	t.Helper()
	fill := func(text string) string {
		for name, value := range known {
			text = strings.ReplaceAll(text, "{"+name+"}", value)
		}
		return text
	}
	who := stage.Caller{System: s, Token: map[string]string{"operator": s.OperatorToken(), "tenant": known["api_key"]}[v.as]}
	var headers []string
	if name, value, ok := strings.Cut(v.header, ": "); ok {
		headers = []string{name, value}
	}
	var body any
	if v.body != "" {
		body = fill(v.body)
	}
	until := regexp.MustCompile(v.until)
	testkit.Eventually(t, stage.Soon, v.method+" "+v.path+" answers "+v.until, func() bool {
		got = who.Call(t, v.method, fill(v.path), body, headers...)
		return until.Match(got.Body)
	})
	return got
}

func headersOf(a stage.Answer) string {
	shown := map[string]string{}
	for _, name := range []string{"Content-Type", "WWW-Authenticate", "Allow", "Idempotency-Mismatch", "Retry-After"} {
		if value := a.Header.Get(name); value != "" {
			shown[name] = value
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		lines = append(lines, name+": "+shown[name])
	}
	return strings.Join(lines, ", ")
}

// plainer replaces what differs by chance. Ids become numbers in the order in which
// they first appear, so that the same id stays the same.
type plainer struct {
	receiver string
	ids      []string
}

var (
	idPattern   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|evt_[0-9a-f]{32}`)
	oncePattern = []struct {
		pattern *regexp.Regexp
		name    string
	}{
		{regexp.MustCompile(`ptl_[0-9A-Za-z]{8}(_[0-9A-Za-z]{38})?`), "<key>"},
		{regexp.MustCompile(`whsec_[0-9A-Za-z_-]{43}`), "<secret>"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
		{regexp.MustCompile(`"duration_ms":\d+`), `"duration_ms":<n>`},
		{regexp.MustCompile(`"next_cursor":"[^"]+"`), `"next_cursor":"<cursor>"`},
	}
)

func (p *plainer) text(text string) string {
	text = strings.ReplaceAll(text, p.receiver, "<receiver>")
	for _, once := range oncePattern {
		text = once.pattern.ReplaceAllString(text, once.name)
	}
	return idPattern.ReplaceAllStringFunc(text, func(id string) string {
		at := slices.Index(p.ids, id)
		if at < 0 {
			at = len(p.ids)
			p.ids = append(p.ids, id)
		}
		return fmt.Sprintf("<id %d>", at)
	})
}
