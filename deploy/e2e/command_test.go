package e2e

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"partilha.dev/pkg/testkit"
)

func TestServeRefusesADatabaseThatIsNotMigrated(t *testing.T) {
	t.Parallel()
	nats := testkit.NATS(t)
	for _, service := range services {
		p := newProcess(t, service, "DATABASE_URL="+testkit.Database(t), "NATS_URL="+nats.URL(),
			"WEBHOOKS_SECRET_KEY="+sealingKey, "COMMISSIONS_SECRET_KEY="+sealingKey)
		refused := p.run("serve")
		sentence := strings.TrimSuffix(refused.stderr, "\n")
		if refused.status != 1 || strings.Contains(sentence, "\n") || !strings.HasPrefix(sentence, service+": migrations are pending") {
			t.Errorf("%s serve ends with status %d and says %q", service, refused.status, refused.stderr)
		}
		p.mustRun("migrate")
		p.mustRun("migrate") // doing it again changes nothing
		p.start()
		p.stop()
	}
}

func TestACommandThatDoesNotExistShowsThoseThatDo(t *testing.T) {
	t.Parallel()
	for _, service := range services {
		p := newProcess(t, service)
		for _, args := range [][]string{nil, {"sell"}, {"Serve"}} {
			got := p.run(args...)
			if got.status != 2 || !strings.Contains(got.stderr, "usage: "+service) || !strings.Contains(got.stderr, "migrate") {
				t.Errorf("%s %v ends with status %d and says %q", service, args, got.status, got.stderr)
			}
		}
		if got := p.run("serve"); got.status != 1 || !strings.Contains(got.stderr, "DATABASE_URL") {
			t.Errorf("%s serve without a database ends with status %d and says %q", service, got.status, got.stderr)
		}
	}
}

var keyPattern = regexp.MustCompile(`^ptl_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$`)

func TestAnOperatorMakesATenantAndAKeyAtTheCommandLine(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	sales := p.processes["sales"]
	tenant := sales.mustRun("tenant", "create", "Loja da Ana")
	key := sales.mustRun("key", "issue", tenant, "till 1")
	if !keyPattern.MatchString(key) {
		t.Fatalf("key issue prints %q", key)
	}
	shop := &shop{caller: caller{p, key}}
	shop.awaitKey(t)
	shop.must(t, 201, "POST", "/api/v1/partners", object{"name": "Ana", "referral_code": referralCode})

	for _, wrong := range [][]string{
		{"tenant", "create"}, {"tenant", "create", ""}, {"key", "issue", tenant}, {"key", "issue", "nobody", "x"},
		{"key", "issue", "01890000-0000-7000-8000-000000000000", "x"},
	} {
		got := sales.run(wrong...)
		if got.status != 1 || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("sales %q ends with status %d, prints %q and says %q", wrong, got.status, got.stdout, got.stderr)
		}
	}
}

func TestAnOperatorPublishesEventsAgain(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	shop := openShop(t, p)
	receipts := shop.sellMany(t, "again", 3)
	b := books{p, shop}
	b.settle(t, receipts)
	sales := p.processes["sales"]
	said := sales.mustRun("republish", "2026-01-01T00:00:00Z")
	if !strings.HasSuffix(said, " events are queued; the running service publishes them") || strings.HasPrefix(said, "0 ") {
		t.Errorf("republish says %q", said)
	}
	b.await(t, "sales", "everything queued is published", 0, "select count(*)::text from outbox_pending where $1::text is not null")
	b.settle(t, receipts) // nothing is booked or sent twice
	for _, wrong := range [][]string{{"republish"}, {"republish", "yesterday"}} {
		if got := sales.run(wrong...); got.status != 1 || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("sales %q ends with status %d and says %q", wrong, got.status, got.stderr)
		}
	}
}

func TestAnOperatorReplacesTheKeyOfSigningSecrets(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	shop := openShop(t, p)
	shop.must(t, 201, "POST", "/api/v1/webhook-endpoints", object{"url": "https://example.com/", "events": []string{"*"}})
	hooks := p.processes["webhooks"]
	newKey := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("new-", 8)))
	keys := func(list string) { hooks.env = append(hooks.env, "WEBHOOKS_SECRET_KEY="+list) }
	hooks.stop()

	keys(newKey)
	if got := hooks.run("serve"); got.status != 1 || !strings.Contains(got.stderr, "WEBHOOKS_SECRET_KEY") || strings.Contains(got.stderr, newKey) {
		t.Errorf("without the old key serve ends with status %d and says %q", got.status, got.stderr)
	}
	keys(newKey + "," + sealingKey)
	hooks.start()
	shop.must(t, 201, "POST", "/api/v1/webhook-endpoints", object{"url": "https://example.com/", "events": []string{"*"}})
	said := hooks.mustRun("rekey")
	if !regexp.MustCompile(`^the secrets of [1-9][0-9]* endpoints are sealed again, those of 1 were under the first key already$`).MatchString(said) {
		t.Errorf("rekey says %q", said)
	}
	if got := hooks.run("rekey", "all"); got.status != 1 || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("rekey with an argument ends with status %d and says %q", got.status, got.stderr)
	}
	hooks.stop()
	keys(newKey)
	hooks.start()
}
