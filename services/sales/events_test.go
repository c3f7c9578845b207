package sales

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/testkit"
)

// soon is how long what follows an answer may take in a test: far longer than it
// should, so that only a busy machine needs it.
const soon = time.Minute

// heard is how long the announcement of a key may take on a busy machine; it is promised
// within a second, and nothing else tells of a key before half a minute.
const heard = 20 * time.Second

// parent is the trace that a caller is in.
const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// stream are the messages that the sales stream holds now, the oldest first; none
// while there is no stream.
func (f *fixture) stream() (messages []*jetstream.RawStreamMsg) {
	stream, err := f.deps.Bus.JetStream().Stream(f.t.Context(), "SALES")
	if err != nil {
		return nil
	}
	state := stream.CachedInfo().State
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		message, err := stream.GetMsg(f.t.Context(), seq)
		if err != nil {
			return nil
		}
		messages = append(messages, message)
	}
	return messages
}

// told is the first message of the sales stream that satisfies cond, once there is one.
func (f *fixture) told(what string, cond func(*jetstream.RawStreamMsg) bool) (message *jetstream.RawStreamMsg) {
	f.t.Helper()
	testkit.Eventually(f.t, soon, what+" is published", func() bool {
		for _, m := range f.stream() {
			if cond(m) {
				message = m
				return true
			}
		}
		return false
	})
	return message
}

func isOf(subject string) func(*jetstream.RawStreamMsg) bool {
	return func(m *jetstream.RawStreamMsg) bool { return m.Subject == subject }
}

// saleIs tells whether a message is the event of the sale.
func saleIs(sale *response) func(*jetstream.RawStreamMsg) bool {
	return func(m *jetstream.RawStreamMsg) bool {
		return m.Subject == "sale.recorded" && strings.Contains(string(m.Data), sale.text("sale_id"))
	}
}

// derived is the id of the event that cause brought about.
func derived(name, cause string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + cause))
	return "evt_" + hex.EncodeToString(sum[:16])
}

// golden is the envelope in testdata with the members filled in, given as name, text.
func golden(t *testing.T, name string, members ...string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(members); i += 2 {
		members[i] = "<" + members[i] + ">"
	}
	return strings.NewReplacer(members...).Replace(strings.TrimSpace(string(raw)))
}

func TestARecordedSaleIsToldExactlyAsTheContractSays(t *testing.T) {
	t.Parallel()
	f := start(t, testkit.NATS(t).URL())
	body := f.sale(`order "1" é`, "sold_at", `"2026-03-01T12:00:00.25-03:00"`, "customer_ref", `"ana@example.com"`, "notes", `"private"`)
	made := f.send("POST", "/api/v1/sales", body, "Authorization", "Bearer "+f.key, "traceparent", parent).want(201)
	sale := f.get("/api/v1/sales/" + made.text("sale_id")).want(200)
	message := f.told("the sale", saleIs(made))
	id := derived("sale.recorded", made.text("sale_id"))
	want := golden(t, "sale.recorded", "event_id", id, "created_at", sale.text("created_at"), "tenant_id", f.tenant, "sale_id", made.text("sale_id"),
		"partner_id", f.partner, "campaign_id", f.campaign, "plan_id", f.plan, "commission_id", made.text("commission_id"))
	if string(message.Data) != want {
		t.Errorf("told\n%s\nwant\n%s", message.Data, want)
	}
	if got := message.Header.Get(nats.MsgIdHdr); got != id {
		t.Errorf("Nats-Msg-Id is %s, want %s", got, id)
	}
	if got := message.Header.Get("traceparent"); got != parent {
		t.Errorf("traceparent is %s, want %s", got, parent)
	}
	testkit.Eventually(t, soon, "nothing waits in the outbox", func() bool { return f.rows("outbox_pending") == 0 })
	f.send("POST", "/api/v1/sales", body, "Authorization", "Bearer "+f.key).want(200)
	f.post("/api/v1/sales", f.sale("order-2")).want(201)
	testkit.Eventually(t, soon, "the next sale is told", func() bool { return len(f.stream()) == 3 }) // the partner, the two sales, and no repeat
}

// An event that the sweep has to find waits for two seconds at least.
func TestAnEventGoesStraightFromTheCommitToTheStream(t *testing.T) {
	t.Parallel()
	f := start(t, testkit.NATS(t).URL())
	n := 0
	testkit.Eventually(t, soon, "a sale is told within a second", func() bool {
		n++
		sale := f.post("/api/v1/sales", f.sale(fmt.Sprint("order-", n))).want(201)
		for answered := time.Now(); time.Since(answered) < time.Second; {
			if messages := f.stream(); len(messages) > 0 && saleIs(sale)(messages[len(messages)-1]) {
				return true
			}
		}
		return false
	})
}

func TestAPartnerIsToldExactlyAsTheContractSays(t *testing.T) {
	t.Parallel()
	f := start(t, testkit.NATS(t).URL())
	shown := f.get("/api/v1/partners/" + f.partner).want(200)
	created := f.told("the partner", isOf("partner.created"))
	want := golden(t, "partner.created", "event_id", derived("partner.created", f.partner), "created_at", shown.text("created_at"), "tenant_id", f.tenant, "partner_id", f.partner)
	if string(created.Data) != want {
		t.Errorf("told\n%s\nwant\n%s", created.Data, want)
	}
	f.patch("/api/v1/partners/"+f.partner, `{"status":"suspended"}`).want(200)
	changed := f.told("the change", isOf("partner.changed"))
	var envelope struct {
		CreatedAt string `json:"created_at"`
	}
	if err := json.Unmarshal(changed.Data, &envelope); err != nil {
		t.Fatal(err)
	}
	want = golden(t, "partner.changed", "event_id", derived("partner.changed", f.partner+"/1"), "created_at", envelope.CreatedAt, "tenant_id", f.tenant, "partner_id", f.partner)
	if string(changed.Data) != want {
		t.Errorf("told\n%s\nwant\n%s", changed.Data, want)
	}
}

func TestASaleThatWasMadeWithoutNATSIsToldWhenItIsBack(t *testing.T) {
	t.Parallel()
	server := testkit.NATS(t)
	f := start(t, server.URL())
	before := f.post("/api/v1/sales", f.sale("before")).want(201)
	f.told("the sale", saleIs(before))
	server.Stop()
	var during []*response
	for n := range 20 {
		during = append(during, f.post("/api/v1/sales", f.sale(fmt.Sprint("during-", n))).want(201))
	}
	f.post("/api/v1/sales", f.sale("before")).want(200)
	testkit.Eventually(t, soon, "the service is degraded", func() bool { return strings.Contains(string(f.get("/readyz").want(200).raw), `"degraded"`) })
	server.Start()
	for _, sale := range during {
		f.told("a sale", saleIs(sale))
	}
	testkit.Eventually(t, soon, "nothing waits in the outbox", func() bool { return f.rows("outbox_pending") == 0 })
	testkit.Eventually(t, soon, "the service is ready", func() bool { return strings.Contains(string(f.get("/readyz").want(200).raw), `"ready"`) })
}

func TestAStreamThatLostEverythingIsFilledAgain(t *testing.T) {
	t.Parallel()
	const sales = 50
	server := testkit.NATS(t)
	f := start(t, server.URL())
	for n := range sales {
		f.send("POST", "/api/v1/sales", f.sale(fmt.Sprint("order-", n)), "Authorization", "Bearer "+f.key, "traceparent", parent).want(201)
	}
	count := f.rows("outbox")
	testkit.Eventually(t, soon, "everything is told", func() bool { return len(f.stream()) == count && f.rows("outbox_pending") == 0 })
	before := map[string]string{}
	for _, message := range f.stream() {
		before[message.Header.Get(nats.MsgIdHdr)] = string(message.Data)
	}
	// The owner must have seen the stream before it can notice that something is missing.
	testkit.Eventually(t, soon, "the stream was inspected", func() bool { return f.rows("outbox_stream where last_seq > 0") == 1 })
	server.Kill()
	server.Wipe()
	server.Start()
	testkit.Eventually(t, soon, "everything is told again", func() bool {
		found := map[string]bool{}
		for _, message := range f.stream() {
			id, repair, _ := strings.Cut(message.Header.Get(nats.MsgIdHdr), ":")
			if before[id] != string(message.Data) || !strings.HasPrefix(repair, "r") {
				t.Fatalf("%s is told again as %s", message.Header.Get(nats.MsgIdHdr), message.Data)
			}
			if got := message.Header.Get("traceparent"); message.Subject == "sale.recorded" && got != parent {
				t.Fatalf("told again with the traceparent %s", got)
			}
			found[id] = true
		}
		return len(found) == count
	})
	testkit.Eventually(t, soon, "nothing waits in the outbox", func() bool { return f.rows("outbox_pending") == 0 })
}

func TestKeysAreAnnouncedToTheOtherServices(t *testing.T) {
	t.Parallel()
	server := testkit.NATS(t)
	f := start(t, server.URL())
	announced := func(key string) (value map[string]any) {
		bucket, err := f.deps.Bus.JetStream().KeyValue(t.Context(), "keys")
		if err != nil {
			return nil
		}
		entry, err := bucket.Get(t.Context(), key[4:12])
		if err != nil {
			return nil
		}
		if err := json.Unmarshal(entry.Value(), &value); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(entry.Value()), key[13:]) {
			t.Fatal("a key is announced in clear")
		}
		return value
	}
	made := f.post("/api/v1/api-keys", `{"name":"new","scopes":["goals:read"],"expires_at":"2099-01-01T00:00:00Z"}`).want(201)
	key := made.text("api_key")
	var value map[string]any
	testkit.Eventually(t, heard, "the new key is announced", func() bool { value = announced(key); return value != nil })
	if value["tenant_id"] != f.tenant || fmt.Sprint(value["scopes"]) != "[goals:read]" || value["expires_at"] != "2099-01-01T00:00:00Z" || value["revoked_at"] != nil || value["suspended"] != false {
		t.Errorf("announced as %v", value)
	}
	f.admin("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"suspended"}`).want(200)
	for _, key := range []string{key, f.key} {
		testkit.Eventually(t, heard, "the suspension is announced", func() bool { return announced(key)["suspended"] == true })
	}
	f.admin("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"active"}`).want(200)
	testkit.Eventually(t, heard, "the end of the suspension is announced", func() bool { return announced(key)["suspended"] == false })

	f.call("DELETE", "/api/v1/api-keys/"+made.text("api_key_id"), "").want(204)
	testkit.Eventually(t, heard, "the revocation is announced", func() bool { return announced(key)["revoked_at"] != nil })

	server.Kill()
	server.Wipe()
	server.Start()
	for _, key := range []string{key, f.key} {
		testkit.Eventually(t, soon, "a lost bucket is filled again", func() bool { return announced(key) != nil })
	}
}
