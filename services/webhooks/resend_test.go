package webhooks

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

// onlyDelivery is the one delivery that the tenant has.
func (k *stack) onlyDelivery(s *Service, who member) wire {
	k.t.Helper()
	list := k.deliveries(s, who, "")
	if len(list) != 1 {
		k.t.Fatalf("there are %d deliveries, want one", len(list))
	}
	return list[0]
}

func resendPath(deliveryID string) string { return deliveriesPath + "/" + deliveryID + "/resend" }

func TestADeliveryIsSentAgainWithTheSameBytesWhenSomebodySaysSo(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	var status atomic.Int32
	status.Store(500)
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.run(s.dispatcher.run)
	e := joined(t, who.tenant, time.Now())
	k.fanOut(s, e)
	testkit.Eventually(t, soon, "it has failed", func() bool { return k.inState(stateFailed) == 1 })
	id := k.onlyDelivery(s, who).DeliveryID

	for i, c := range []struct {
		answers int
		state   string
	}{{200, stateDelivered}, {200, stateDelivered}, {503, stateFailed}} {
		status.Store(int32(c.answers))
		var queued wire
		k.ask(s, who, "POST", resendPath(id), "").must(202, &queued)
		if queued.DeliveryID != id || queued.EventID != e.ID.String() || len(queued.Attempts) < i+1 {
			t.Errorf("resending answers %+v", queued)
		}
		testkit.Eventually(t, soon, "it is sent once more", func() bool { return k.inState(c.state) == 1 && k.pending() == 0 })
		now := k.onlyDelivery(s, who)
		if now.DeliveryID != id || now.Status != c.state || len(now.Attempts) != i+2 || *now.Attempts[i+1].StatusCode != c.answers || *now.Attempts[0].StatusCode != 500 {
			t.Errorf("after resending %d times: %+v", i+1, now)
		}
	}
	posts := in.posts()
	if len(posts) != 4 {
		t.Fatalf("it was posted %d times, want 4", len(posts))
	}
	for _, p := range posts {
		if string(p.body) != string(e.Body) || p.header.Get("X-Service-Signature") != posts[0].header.Get("X-Service-Signature") {
			t.Errorf("posted %s with %v", p.body, p.header)
		}
	}
}

func TestOnlyWhatHasEndedAndCanBeReceivedIsSentAgain(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, stranger := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(lenient) // nothing runs, so that nothing is sent
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	id := k.onlyDelivery(s, who).DeliveryID
	refused := func() {
		t.Helper()
		before := k.dump()
		k.ask(s, who, "POST", resendPath(id), "{}").refused(409, "invalid_transition")
		if after := k.dump(); after != before {
			t.Errorf("a refusal changed\n%s\ninto\n%s", before, after)
		}
	}
	refused() // while it is pending

	k.exec("update endpoints set disabled_reason = 'a test'")
	if err := s.sweeper.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused() // while its endpoint is disabled
	k.exec("update endpoints set disabled_reason = null")
	mustBeAlike(t, k.ask(s, stranger, "POST", resendPath(id), ""), k.ask(s, stranger, "POST", resendPath(uuid.NewString()), ""))
	k.ask(s, who, "POST", resendPath(uuid.NewString()), "").refused(404, "not_found")
	k.ask(s, who, "POST", resendPath("x"), "").refused(400, "invalid_parameter")
	k.ask(s, who, "POST", resendPath(id), `{"x":1}`).refused(400, "invalid_body")

	k.ask(s, who, "POST", resendPath(id), "").must(202, nil) // what was skipped can be sent
	if d := k.onlyDelivery(s, who); d.Status != "pending" || k.waiting() != 1 {
		t.Errorf("it is %+v", d)
	}
	refused() // for it is pending again

	k.ask(s, who, "DELETE", "/api/v1/webhook-endpoints/"+endpoint, "").must(204, nil)
	refused() // and then its endpoint is gone
}

func TestWhatMayBeDroppedAtAnyMomentIsNotSentAgain(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*")
	k.exec("update endpoints set created_at = created_at - interval '60 days'")
	k.fanOut(s, joined(t, who.tenant, dayOf(time.Now()).AddDate(0, 0, -defaultKeepDays)))
	k.exec("update endpoints set disabled_reason = 'a test'")
	if err := s.sweeper.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.exec("update endpoints set disabled_reason = null")
	id := k.onlyDelivery(s, who).DeliveryID
	s.deps.Now = func() time.Time { return time.Now().AddDate(0, 0, 1) }
	k.ask(s, who, "POST", resendPath(id), "").refused(409, "invalid_transition")
	s.deps.Now = time.Now
	k.ask(s, who, "POST", resendPath(id), "").must(202, nil)
}

// Of many who ask at once one is heard, on whichever instance.
func TestACrowdThatResendsADeliverySendsItOnce(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	one, two := k.service(lenient), k.service(lenient)
	k.register(one, who, in.URL, "*")
	k.fanOut(one, joined(t, who.tenant, time.Now()))
	k.exec("update pending set claim = gen_random_uuid(), claimed_at = now() - interval '1 h'")
	if err := one.sweeper.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := k.onlyDelivery(one, who).DeliveryID
	var crowd sync.WaitGroup
	var granted, refused atomic.Int32
	for i := range 20 {
		crowd.Go(func() {
			switch code := k.ask([]*Service{one, two}[i%2], who, "POST", resendPath(id), "").Code; code {
			case 202:
				granted.Add(1)
			case 409:
				refused.Add(1)
			default:
				t.Errorf("one of the crowd is answered %d", code)
			}
		})
	}
	crowd.Wait()
	if granted.Load() != 1 || refused.Load() != 19 {
		t.Errorf("%d are granted and %d refused, want 1 and 19", granted.Load(), refused.Load())
	}
	k.run(one.dispatcher.run, two.dispatcher.run, two.sweeper.run)
	testkit.Eventually(t, soon, "it is delivered", func() bool { return k.inState(stateDelivered) == 1 })
	if n := in.count(); n != 1 {
		t.Errorf("it was posted %d times", n)
	}
	d := k.onlyDelivery(one, who)
	if len(d.Attempts) != 2 || d.Attempts[0].DurationMS != nil || d.Attempts[1].DurationMS == nil {
		t.Errorf("of the sending that nobody knows about nothing is left: %+v", d.Attempts)
	}
}

func TestAResentDeliveryOfADeadWorkerIsUnknownAgain(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*", event.NameSaleRecorded)
	k.fanOut(s, sold(t, who.tenant, time.Now()))
	for sendings := 1; sendings <= 3; sendings++ {
		k.exec("update pending set claim = gen_random_uuid(), claimed_at = now() - interval '1 h'")
		if err := s.sweeper.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		d := k.onlyDelivery(s, who)
		if d.Status != stateUnknown || len(d.Attempts) != sendings || k.pending() != 0 {
			t.Fatalf("after %d sendings: %+v", sendings, d)
		}
		k.ask(s, who, "POST", resendPath(d.DeliveryID), "").must(202, nil)
	}
}
