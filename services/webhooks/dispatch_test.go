package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

func TestAnEventIsOneSignedPOSTOfItsVeryBytes(t *testing.T) {
	t.Parallel()
	k := newStackWithNATS(t)
	who := k.member(uuid.New())
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("thanks")) })
	s := k.service(lenient)
	created := k.register(s, who, in.URL+"/hooks?source=partilha", "*")
	k.run(s.Run)
	e := joined(t, who.tenant, time.Now())
	k.publish(k.connect(), "", e)
	testkit.Eventually(t, soon, "the event is delivered", func() bool { return k.inState(stateDelivered) == 1 })

	posts := in.posts()
	if len(posts) != 1 {
		t.Fatalf("%d posts", len(posts))
	}
	got := posts[0]
	mac := hmac.New(sha256.New, []byte(created.Secret))
	mac.Write(e.Body)
	signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	want := http.Header{
		"Content-Type": {"application/json"}, "X-Service-Event": {"partner.created"}, "X-Service-Signature": {signature},
		"User-Agent": {"Service-Webhook/1.0"}, "Content-Length": {strconv.Itoa(len(e.Body))},
	}
	if got.method != "POST" || got.path != "/hooks?source=partilha" || !reflect.DeepEqual(got.header, want) {
		t.Errorf("%s %s with %v, want %v", got.method, got.path, got.header, want)
	}
	if string(got.body) != string(e.Body) {
		t.Errorf("body %s, want %s", got.body, e.Body)
	}

	list := k.deliveries(s, who, "&endpoint_id="+created.EndpointID)
	if len(list) != 1 || list[0].Status != "delivered" || len(list[0].Attempts) != 1 || list[0].EventID != e.ID.String() {
		t.Fatalf("deliveries %+v", list)
	}
	a := list[0].Attempts[0]
	if a.StatusCode == nil || *a.StatusCode != 200 || a.Error != nil || a.DurationMS == nil || a.Excerpt == nil || *a.Excerpt != "thanks" {
		t.Errorf("attempt %+v", a)
	}
	var detail wire
	k.ask(s, who, "GET", "/api/v1/webhook-deliveries/"+list[0].DeliveryID, "").must(200, &detail)
	shown := http.Header{}
	for name, value := range detail.Request.Headers {
		shown.Set(name, value)
	}
	want.Set("Host", got.host)
	if detail.Request.Method != "POST" || detail.Request.URL != in.URL+"/hooks?source=partilha" ||
		detail.Request.Body != string(e.Body) || !reflect.DeepEqual(shown, want) {
		t.Errorf("request %+v, want headers %v", detail.Request, want)
	}
}

func TestADeliveryIsSentWithoutWaitingForTheSweep(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.run(s.dispatcher.run) // and no sweeper
	events := joinedMany(t, who.tenant, 3*perEndpoint)
	k.fanOut(s, events...)
	testkit.Eventually(t, soon, "all are delivered", func() bool { return k.inState(stateDelivered) == len(events) })
	in.mustHaveOnce(t, events...)
}

func TestWhatWasReadyBeforeTheStartIsFound(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.exec("update endpoints set created_at = created_at - interval '20 days'")
	var events []event.Sealed
	for day := range 20 {
		events = append(events, joined(t, who.tenant, time.Now().AddDate(0, 0, -day)))
	}
	k.fanOut(s, events...)
	k.run(k.service(lenient).Run) // another process, which nobody told
	testkit.Eventually(t, soon, "all are delivered", func() bool { return k.inState(stateDelivered) == len(events) })
	in.mustHaveOnce(t, events...)
}

func TestReceiversThatHangDelayNobodyElse(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, other := k.member(uuid.New()), k.member(uuid.New())
	release := make(chan struct{})
	defer close(release)
	hanging := newInbox(t, func(http.ResponseWriter, *http.Request) { <-release })
	healthy := newInbox(t, nil)
	config := lenient
	config.Timeout, config.Lease = time.Minute, time.Hour
	s := k.service(config)
	for range 6 {
		k.register(s, who, hanging.URL, "*")
	}
	k.run(s.Run)
	hung := joinedMany(t, who.tenant, 100)
	k.fanOut(s, hung...)
	testkit.Eventually(t, soon, "the tenant's slots are nearly used up", func() bool { return hanging.count() > perTenant*3/4 })

	k.register(s, who, healthy.URL, "*")
	k.register(s, other, healthy.URL, "*")
	flowing := append(joinedMany(t, who.tenant, 50), joinedMany(t, other.tenant, 200)...)
	k.fanOut(s, flowing...)
	testkit.Eventually(t, soon, "the healthy endpoints have all", func() bool { return k.inState(stateDelivered) == len(flowing) })
	healthy.mustHaveOnce(t, flowing...)
	if most := k.mostInFlight(); most > perEndpoint {
		t.Errorf("%d in flight to one endpoint", most)
	}
}

func TestADeliveryThatHangsFailsAtTheTimeout(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	config := lenient
	config.Timeout = 300 * time.Millisecond
	s := k.service(config)
	k.register(s, who, in.URL, "*")
	k.run(s.Run)
	events := joinedMany(t, who.tenant, 3)
	k.fanOut(s, events...)
	testkit.Eventually(t, soon, "all have failed", func() bool { return k.inState(stateFailed) == len(events) })
	in.mustHaveOnce(t, events...)
	for _, d := range k.deliveries(s, who, "") {
		a := d.Attempts[0]
		if len(d.Attempts) != 1 || a.Error == nil || *a.Error != "timeout" || a.StatusCode != nil || *a.DurationMS < 300 || *a.DurationMS > 2000 {
			t.Errorf("attempts %+v", d.Attempts)
		}
	}
}

func TestWhatAReceiverSaysIsRecorded(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	elsewhere := newInbox(t, nil)
	dead := newInbox(t, nil)
	dead.Close()
	want := map[string]struct {
		status, error string
		code          int
	}{}
	expect := func(url, status, failed string, code int) {
		want[k.register(s, who, url, "*").EndpointID] = struct {
			status, error string
			code          int
		}{status, failed, code}
	}
	answering := func(code int) string {
		return newInbox(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(code)
			_, _ = w.Write([]byte("a\x00b\xff"))
		}).URL
	}
	expect(answering(201), "delivered", "", 201)
	expect(answering(500), "failed", "status", 500)
	expect(answering(307), "failed", "redirect", 307)
	expect(dead.URL, "failed", "connect", 0)
	k.run(s.Run)
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	testkit.Eventually(t, soon, "all are recorded", func() bool { return k.pending() == 0 })

	for _, d := range k.deliveries(s, who, "") {
		w, a := want[d.EndpointID], d.Attempts[0]
		failed, code := "", 0
		if a.Error != nil {
			failed = *a.Error
		}
		if a.StatusCode != nil {
			code = *a.StatusCode
		}
		if d.Status != w.status || failed != w.error || code != w.code {
			t.Errorf("%s with error %q and code %d, want %+v", d.Status, failed, code, w)
		}
		if code != 0 && (a.Excerpt == nil || *a.Excerpt != "a\uFFFDb\uFFFD") {
			t.Errorf("excerpt %v", a.Excerpt)
		}
	}
	if n := elsewhere.count(); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
}

func TestARefusedAddressIsBlockedBeforeAByteIsSent(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	k.register(k.service(lenient), who, in.URL, "*")
	k.register(k.service(lenient), who, strings.Replace(in.URL, "127.0.0.1", "localhost", 1), "*")
	strict := k.service(Config{SecretKey: testKey, AllowHTTP: true, Ports: "*"}) // the exception has been taken back
	k.run(strict.Run)
	k.fanOut(strict, joined(t, who.tenant, time.Now()))
	testkit.Eventually(t, soon, "both have failed", func() bool { return k.inState(stateFailed) == 2 })
	for _, d := range k.deliveries(strict, who, "") {
		if a := d.Attempts[0]; a.Error == nil || *a.Error != "blocked" || a.StatusCode != nil {
			t.Errorf("attempt %+v", a)
		}
	}
	if n := in.count(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestTheLocalStackReachesThisMachineAndNothingElse(t *testing.T) {
	t.Parallel()
	policy, err := Config{OpenLoopback: true}.policy()
	if err != nil {
		t.Fatal(err)
	}
	for url, allowed := range map[string]bool{
		"http://127.0.0.1:8080/": true, "http://localhost:9999/": true, "https://example.com/": true,
		"http://10.0.0.1/": false, "http://example.com/": false, "https://example.com:22/": false,
	} {
		if _, issues := policy.checkURL(url); (len(issues) == 0) != allowed {
			t.Errorf("%s: %v", url, issues)
		}
	}
}

func TestTwoInstancesShareTheWorkAndPostNothingTwice(t *testing.T) {
	t.Parallel()
	k := newStackWithNATS(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	var sent [2]atomic.Int64
	var instances [2]*Service
	for i := range instances {
		s := k.service(lenient)
		lines := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard), zap.InfoLevel)
		s.dispatcher.recorder.log = zap.New(lines, zap.Hooks(func(zapcore.Entry) error {
			sent[i].Add(1) // one line for each attempt
			return nil
		}))
		instances[i] = s
	}
	k.register(instances[0], who, in.URL, "*")
	for _, s := range instances {
		k.run(s.Run)
	}
	publisher := k.connect()
	events := joinedMany(t, who.tenant, 2000)
	for start := 0; start < len(events); start += 100 {
		k.publish(publisher, "", events[start:start+100]...)
	}
	testkit.Eventually(t, 2*soon, "all are delivered", func() bool { return k.inState(stateDelivered) == len(events) })
	in.mustHaveOnce(t, events...)
	if sent[0].Load() == 0 || sent[1].Load() == 0 {
		t.Errorf("one sent %d and the other %d", sent[0].Load(), sent[1].Load())
	}
}

func TestADeletedEndpointIsSentNothingMore(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	created := k.register(s, who, in.URL, "*")
	disabled := k.register(s, who, in.URL, "*")
	k.fanOut(s, joinedMany(t, who.tenant, 10)...)
	k.ask(s, who, "DELETE", endpointsPath+"/"+created.EndpointID, "").must(204, nil)
	if n := k.inState(stateSkipped); n != 10 {
		t.Errorf("%d are skipped, want 10", n)
	}
	k.exec("update endpoints set disabled_reason = 'its receiver said 410' where endpoint_id = $1", disabled.EndpointID)
	k.fanOut(s, joinedMany(t, who.tenant, 5)...)
	k.run(s.Run)
	testkit.Eventually(t, soon, "the disabled endpoint's are skipped too", func() bool { return k.inState(stateSkipped) == 25 })
	history := k.deliveries(s, who, "&endpoint_id="+created.EndpointID)
	if len(history) != 10 || history[0].Status != "skipped" || history[0].Reason == nil || *history[0].Reason != reasonDeleted {
		t.Errorf("history %+v", history)
	}
	var detail map[string]any
	k.ask(s, who, "GET", "/api/v1/webhook-deliveries/"+history[0].DeliveryID, "").must(200, &detail)
	if request, ok := detail["request"]; request != nil || !ok {
		t.Errorf("detail %v, want a null request", detail)
	}
	if n := in.count(); n != 0 {
		t.Errorf("%d posts arrived", n)
	}
	if n := k.pending(); n != 0 {
		t.Errorf("%d are still to be sent", n)
	}
}
