package e2e

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

func TestServeRefusesADatabaseThatIsNotMigrated(t *testing.T) {
	t.Parallel()
	nats := testkit.NATS(t)
	for _, service := range stage.Services {
		p := stage.NewProcess(t, service, "DATABASE_URL="+testkit.Database(t), "NATS_URL="+nats.URL(),
			"WEBHOOKS_SECRET_KEY="+stage.SealingKey, "COMMISSIONS_SECRET_KEY="+stage.SealingKey)
		refused := p.Run("serve")
		sentence := strings.TrimSuffix(refused.Stderr, "\n")
		if refused.Status != 1 || strings.Contains(sentence, "\n") || !strings.HasPrefix(sentence, service+": migrations are pending") {
			t.Errorf("%s serve ends with status %d and says %q", service, refused.Status, refused.Stderr)
		}
		p.MustRun("migrate")
		p.MustRun("migrate") // doing it again changes nothing
		p.Start()
		p.Stop()
	}
}

func TestACommandThatDoesNotExistShowsThoseThatDo(t *testing.T) {
	t.Parallel()
	for _, service := range stage.Services {
		p := stage.NewProcess(t, service)
		for _, args := range [][]string{nil, {"sell"}, {"Serve"}} {
			got := p.Run(args...)
			if got.Status != 2 || !strings.Contains(got.Stderr, "usage: "+service) || !strings.Contains(got.Stderr, "migrate") {
				t.Errorf("%s %v ends with status %d and says %q", service, args, got.Status, got.Stderr)
			}
		}
		if got := p.Run("serve"); got.Status != 1 || !strings.Contains(got.Stderr, "DATABASE_URL") {
			t.Errorf("%s serve without a database ends with status %d and says %q", service, got.Status, got.Stderr)
		}
	}
}

var keyPattern = regexp.MustCompile(`^ptl_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$`)

func TestAnOperatorMakesATenantAndAKeyAtTheCommandLine(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	sales := p.Processes["sales"]
	tenant := sales.MustRun("tenant", "create", "Loja da Ana")
	key := sales.MustRun("key", "issue", tenant, "till 1")
	if !keyPattern.MatchString(key) {
		t.Fatalf("key issue prints %q", key)
	}
	shop := &stage.Shop{Caller: stage.Caller{System: p, Token: key}}
	shop.AwaitKey(t)
	shop.Must(t, 201, "POST", "/api/v1/partners", stage.Object{"name": "Ana", "referral_code": stage.ReferralCode})

	for _, wrong := range [][]string{
		{"tenant", "create"}, {"tenant", "create", ""}, {"key", "issue", tenant}, {"key", "issue", "nobody", "x"},
		{"key", "issue", "01890000-0000-7000-8000-000000000000", "x"},
	} {
		got := sales.Run(wrong...)
		if got.Status != 1 || got.Stdout != "" || strings.Count(got.Stderr, "\n") != 1 {
			t.Errorf("sales %q ends with status %d, prints %q and says %q", wrong, got.Status, got.Stdout, got.Stderr)
		}
	}
}

func TestAnOperatorPublishesEventsAgain(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	receipts := shop.SellMany(t, "again", 3)
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, receipts)
	sales := p.Processes["sales"]
	said := sales.MustRun("republish", "2026-01-01T00:00:00Z")
	if !strings.HasSuffix(said, " events are queued; the running service publishes them") || strings.HasPrefix(said, "0 ") {
		t.Errorf("republish says %q", said)
	}
	b.Await(t, "sales", "everything queued is published", 0, "select count(*)::text from outbox_pending where $1::text is not null")
	b.Settle(t, receipts) // nothing is booked or sent twice
	for _, wrong := range [][]string{{"republish"}, {"republish", "yesterday"}} {
		if got := sales.Run(wrong...); got.Status != 1 || strings.Count(got.Stderr, "\n") != 1 {
			t.Errorf("sales %q ends with status %d and says %q", wrong, got.Status, got.Stderr)
		}
	}
}

func TestAnOperatorReplacesTheKeyOfSigningSecrets(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	shop.Must(t, 201, "POST", "/api/v1/webhook-endpoints", stage.Object{"url": "https://example.com/", "events": []string{"*"}})
	hooks := p.Processes["webhooks"]
	newKey := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("new-", 8)))
	keys := func(list string) { hooks.Env = append(hooks.Env, "WEBHOOKS_SECRET_KEY="+list) }
	hooks.Stop()

	keys(newKey)
	if got := hooks.Run("serve"); got.Status != 1 || !strings.Contains(got.Stderr, "WEBHOOKS_SECRET_KEY") || strings.Contains(got.Stderr, newKey) {
		t.Errorf("without the old key serve ends with status %d and says %q", got.Status, got.Stderr)
	}
	keys(newKey + "," + stage.SealingKey)
	hooks.Start()
	shop.Must(t, 201, "POST", "/api/v1/webhook-endpoints", stage.Object{"url": "https://example.com/", "events": []string{"*"}})
	said := hooks.MustRun("rekey")
	if !regexp.MustCompile(`^the secrets of [1-9][0-9]* endpoints are sealed again, those of 1 were under the first key already$`).MatchString(said) {
		t.Errorf("rekey says %q", said)
	}
	if got := hooks.Run("rekey", "all"); got.Status != 1 || strings.Count(got.Stderr, "\n") != 1 {
		t.Errorf("rekey with an argument ends with status %d and says %q", got.Status, got.Stderr)
	}
	hooks.Stop()
	keys(newKey)
	hooks.Start()
}
