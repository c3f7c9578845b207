package webhooks

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/webhook"
)

// rotateTo replaces the secret of the endpoint and returns the new one.
func (k *stack) rotateTo(s *Service, who member, endpoint, body string) (secret string, previousUntil *time.Time) {
	k.t.Helper()
	var made struct {
		EndpointID string `json:"endpoint_id"`
		Secret     string
		Until      *time.Time `json:"previous_valid_until"`
	}
	k.ask(s, who, "POST", endpointsPath+"/"+endpoint+"/rotate-secret", body).must(200, &made)
	if made.EndpointID != endpoint || !secretPattern.MatchString(made.Secret) {
		k.t.Errorf("the rotation answers %+v", made)
	}
	return made.Secret, made.Until
}

func TestANewSecretSignsAtOnceAndTheOldOneBesideItUntilItsOverlapEnds(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.run(s.Run)
	created := k.register(s, who, in.URL, "*")
	// next is what the receiver gets next.
	next := func() post {
		t.Helper()
		n := in.count()
		k.fanOut(s, joined(t, who.tenant, time.Now()))
		testkit.Eventually(t, soon, "one more is delivered", func() bool { return k.inState(stateDelivered) == n+1 })
		return in.posts()[n]
	}
	mustSign := func(p post, secret, previous string) {
		t.Helper()
		if got, want := p.header.Get("X-Service-Signature"), sign(secret, p.body); got != want {
			t.Errorf("X-Service-Signature: %s, want %s", got, want)
		}
		switch got := p.header.Values(webhook.PreviousHeader); {
		case previous == "" && len(got) > 0:
			t.Errorf("%s: %s, want none", webhook.PreviousHeader, got)
		case previous != "" && (len(got) != 1 || got[0] != sign(previous, p.body)):
			t.Errorf("%s: %s, want %s", webhook.PreviousHeader, got, sign(previous, p.body))
		}
	}

	mustSign(next(), created.Secret, "")
	second, until := k.rotateTo(s, who, created.EndpointID, ``)
	if until == nil || time.Until(*until) < 23*time.Hour || time.Until(*until) > 25*time.Hour {
		t.Errorf("the first secret signs until %v, want for a day", until)
	}
	p := next()
	mustSign(p, second, created.Secret)
	var shown wire
	k.ask(s, who, "GET", deliveriesPath+"/"+k.deliveries(s, who, "")[0].DeliveryID, "").must(200, &shown)
	for _, name := range []string{"X-Service-Signature", webhook.PreviousHeader} {
		if shown.Request == nil || shown.Request.Headers[name] != p.header.Get(name) {
			t.Errorf("the delivery shows %+v, and %s: %s was sent", shown.Request, name, p.header.Get(name))
		}
	}

	third, until := k.rotateTo(s, who, created.EndpointID, `{"overlap_seconds":604800}`)
	if until == nil || time.Until(*until) < 167*time.Hour || time.Until(*until) > 169*time.Hour {
		t.Errorf("the second secret signs until %v, want for a week", until)
	}
	mustSign(next(), third, second)
	k.exec("update endpoints set previous_until = clock_timestamp()")
	mustSign(next(), third, "")

	fourth, until := k.rotateTo(s, who, created.EndpointID, `{"overlap_seconds":0}`)
	if until != nil {
		t.Errorf("without an overlap the third secret signs until %v", until)
	}
	mustSign(next(), fourth, "")
	if n := k.count("select count(*) from endpoints where previous_secret is not null"); n != 0 {
		t.Error("the third secret is still stored")
	}

	k.rotateTo(s, who, created.EndpointID, `{}`)
	var all string
	if err := k.pool.QueryRow(t.Context(), "select encode(secret, 'escape') || encode(previous_secret, 'escape') from endpoints").Scan(&all); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(all, secretPrefix) || strings.Contains(all, fourth[len(secretPrefix):]) {
		t.Error("a secret is stored in clear")
	}
}

func TestARotationThatIsNotValidReplacesNothing(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	id := k.register(s, who, "https://example.com/", "*").EndpointID
	before := k.count("select hashtext(secret::text) from endpoints")
	for _, body := range []string{`null`, `{"overlap_seconds":-1}`, `{"overlap_seconds":604801}`, `{"overlap_seconds":1.5}`, `{"overlap_seconds":"60"}`, `{"secret":"mine"}`} {
		k.ask(s, who, "POST", endpointsPath+"/"+id+"/rotate-secret", body).refused(400, "invalid_body")
	}
	if after := k.count("select hashtext(secret::text) from endpoints"); after != before {
		t.Error("the secret is another one")
	}
}

func TestBothSecretsAreSealedAgainUnderTheFirstKey(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	created := k.register(s, who, "https://example.com/", "*")
	second, _ := k.rotateTo(s, who, created.EndpointID, `{}`)
	alone := testSealer(t, otherKey)
	if err := alone.checkKeys(t.Context(), k.pool); err == nil {
		t.Error("the new key alone is taken for enough")
	}
	both := testSealer(t, otherKey+","+testKey)
	// Of the two only the one that still signs beside the other is under the old key.
	sealed, err := both.seal(uuid.MustParse(created.EndpointID), second)
	if err != nil {
		t.Fatal(err)
	}
	k.exec("update endpoints set secret = $1", sealed)
	if err := alone.checkKeys(t.Context(), k.pool); err == nil {
		t.Error("the key of a secret in its overlap is not missed")
	}
	if err := rekey(t.Context(), k.pool, both, &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	if err := alone.checkKeys(t.Context(), k.pool); err != nil {
		t.Error(err)
	}
	listeners, err := s.listeners(t.Context(), who.tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := alone.sign(listeners[0].endpoint, listeners[0].sealed, [16]byte{}, time.Now(), sampleBody)
	if err != nil || signed.value != sign(second, sampleBody) || signed.extra.Get(webhook.PreviousHeader) != sign(created.Secret, sampleBody) {
		t.Errorf("signed %+v, %v", signed, err)
	}
}

// The vector is that of the specification of Standard Webhooks.
func TestAStandardSignatureIsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	got, err := signStandard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("signed %s, %v, want %s", got, err, want)
	}
}

func TestTheHeadersOfStandardWebhooksAreAddedForWhoAsksForThem(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.run(s.Run)
	created := k.register(s, who, in.URL, "*")
	k.ask(s, who, "PATCH", endpointsPath+"/"+created.EndpointID, `{"standard_webhooks":true}`).must(200, nil)
	second, _ := k.rotateTo(s, who, created.EndpointID, `{}`)
	told := joined(t, who.tenant, time.Now())
	k.fanOut(s, told)
	testkit.Eventually(t, soon, "it is delivered", func() bool { return k.inState(stateDelivered) == 1 })

	p := in.posts()[0]
	timestamp := p.header.Get("webhook-timestamp")
	var list []string
	for _, secret := range []string{second, created.Secret} {
		signature, err := signStandard(secret, told.ID.String(), timestamp, p.body)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, signature)
	}
	want := http.Header{
		"Webhook-Id": {told.ID.String()}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {strings.Join(list, " ")},
		"X-Service-Signature": {sign(second, p.body)}, webhook.PreviousHeader: {sign(created.Secret, p.body)},
	}
	for name, value := range want {
		if got := p.header.Values(name); len(got) != 1 || got[0] != value[0] {
			t.Errorf("%s: %s, want %s", name, got, value)
		}
	}
	var shown wire
	k.ask(s, who, "GET", deliveriesPath+"/"+k.deliveries(s, who, "")[0].DeliveryID, "").must(200, &shown)
	for name, value := range want {
		if got := shown.Request.Headers[name]; got != value[0] {
			t.Errorf("the delivery shows %s: %s, and %s was sent", name, got, value)
		}
	}
}
