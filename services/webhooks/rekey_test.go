package webhooks

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
)

func TestAKeyIsReplacedWhileEndpointsAreSentTo(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	sent := 0
	// deliver has the service send one more event to both endpoints, under their secrets.
	deliver := func(s *Service, secrets ...string) {
		t.Helper()
		k.fanOut(s, joined(t, who.tenant, time.Now()))
		sent += len(secrets)
		testkit.Eventually(t, soon, "all are delivered", func() bool { return k.inState(stateDelivered) == sent })
		signed := map[string]int{}
		for _, p := range in.posts()[sent-len(secrets):] {
			for _, secret := range secrets {
				if p.header.Get("X-Service-Signature") == sign(secret, p.body) {
					signed[secret]++
				}
			}
		}
		for _, secret := range secrets {
			if signed[secret] != 1 {
				t.Errorf("of %d webhooks %d are signed with the secret that was shown", len(secrets), signed[secret])
			}
		}
	}
	with := func(keys string) Config {
		config := lenient
		config.SecretKey = keys
		return config
	}

	before := k.service(with(testKey))
	stop := k.run(before.Run)
	first := k.register(before, who, in.URL, "*").Secret
	deliver(before, first)
	stop()

	during := k.service(with(otherKey + "," + testKey))
	stop = k.run(during.Run)
	second := k.register(during, who, in.URL, "*").Secret
	deliver(during, first, second)
	if _, err := New(t.Context(), with(otherKey), k.deps()); err == nil || !strings.Contains(err.Error(), "WEBHOOKS_SECRET_KEY") {
		t.Errorf("without the old key the service starts: %v", err)
	}
	if _, err := New(t.Context(), with(testKey), k.deps()); err == nil || !strings.Contains(err.Error(), "WEBHOOKS_SECRET_KEY") {
		t.Errorf("without the new key the service starts: %v", err)
	}

	var said strings.Builder
	if err := rekey(t.Context(), k.pool, during.sealer, &said); err != nil {
		t.Fatal(err)
	}
	if want := "the secrets of 1 endpoints are sealed again, those of 1 were under the first key already\n"; said.String() != want {
		t.Errorf("rekey says %q, want %q", said.String(), want)
	}
	deliver(during, first, second)
	stop()

	after := k.service(with(otherKey))
	k.run(after.Run)
	deliver(after, first, second)
}

func TestSealingAgainGoesThroughEveryBatchAndCanBeBegunAnew(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	both, old := testSealer(t, otherKey+","+testKey), testSealer(t, testKey)
	const endpoints = 2*rekeyAtOnce + 1
	tenants := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	var lost uuid.UUID
	for i := range endpoints {
		id := uuid.New()
		sealed, err := old.seal(id, "whsec_secret")
		if err != nil {
			t.Fatal(err)
		}
		if i == endpoints/2 {
			lost = id
			sealed[len(sealed)-1] ^= 1
		}
		k.exec("insert into endpoints (tenant_id, endpoint_id, url, events, secret, created_at) values ($1, $2, 'https://example.com/', '{*}', $3, now())",
			tenants[i%len(tenants)], id, sealed)
	}
	k.exec("insert into endpoints (tenant_id, endpoint_id, url, events, created_at, deleted_at) values ($1, $2, 'https://example.com/', '{*}', now(), now())",
		tenants[0], uuid.New())

	for _, want := range []string{
		"the secrets of 1000 endpoints are sealed again, those of 0 were under the first key already\n",
		"the secrets of 0 endpoints are sealed again, those of 1000 were under the first key already\n",
	} {
		var said strings.Builder
		if err := rekey(t.Context(), k.pool, both, &said); err == nil || !strings.Contains(err.Error(), "1 endpoints: ["+lost.String()+"]") {
			t.Errorf("of the secret that cannot be opened it says %v", err)
		}
		if said.String() != want {
			t.Errorf("it says %q, want %q", said.String(), want)
		}
	}
	rows, err := k.pool.Query(t.Context(), "select endpoint_id, secret from endpoints where secret is not null and endpoint_id <> $1", lost)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	alone := testSealer(t, otherKey)
	for rows.Next() {
		var id uuid.UUID
		var sealed []byte
		if err := rows.Scan(&id, &sealed); err != nil {
			t.Fatal(err)
		}
		if secret, err := alone.open(id, sealed); err != nil || secret != "whsec_secret" {
			t.Errorf("the secret of %s opens to %q, %v", id, secret, err)
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
}
