package webhooks

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

func TestAStarMeansTheFiveUsualEventsAndAllOthersMustBeNamed(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for _, name := range deliverable {
		e := event.Sealed{Name: name, CreatedAt: at}
		isUsual := slices.Contains(event.Default, name)
		if got := (choice{[]string{usual}, at}).wants(e); got != isUsual {
			t.Errorf("* wants %s: %t", name, got)
		}
		if !(choice{[]string{name}, at}).wants(e) {
			t.Errorf("%s is named and not wanted", name)
		}
		if got := (choice{[]string{usual, event.NameGoalReached}, at}).wants(e); got != (isUsual || name == event.NameGoalReached) {
			t.Errorf("* and goal.reached want %s: %t", name, got)
		}
	}
	if len(event.Default) != 5 {
		t.Errorf("there are %d usual events", len(event.Default))
	}
}

func TestEveryStreamIsHeardAndNothingInternal(t *testing.T) {
	t.Parallel()
	heard := map[string]string{}
	for _, consumer := range (&Service{}).Consumers() {
		for _, name := range consumer.Events {
			heard[name] = consumer.Name
			if event.Internal(name) {
				t.Errorf("%s hears %s", consumer.Name, name)
			}
		}
	}
	for name, want := range map[string]string{
		"sale.recorded": "webhooks-sales", "conversion.recorded": "webhooks-sales", "commission.available": "webhooks-commissions",
		"withdrawal.requested": "webhooks-commissions", "goal.reached": "webhooks-goals",
	} {
		if heard[name] != want {
			t.Errorf("%s is heard by %q, want %s", name, heard[name], want)
		}
	}
	if len(heard) != len(deliverable) {
		t.Errorf("%d events are heard, want %d", len(heard), len(deliverable))
	}
}

func TestAnEndpointHearsWhatItChoseSinceItWasMade(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, other := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(lenient)
	before := joined(t, who.tenant, time.Now().Add(-time.Second))
	all := k.register(s, who, "https://example.com/all", "*").EndpointID
	sales := k.register(s, who, "https://example.com/sales", event.NameSaleRecorded).EndpointID
	k.register(s, other, "https://example.com/other", "*")
	partner, sale := joined(t, who.tenant, time.Now()), sold(t, who.tenant, time.Now())
	k.fanOut(s, before, sale, partner)

	got := map[string][]string{}
	for _, d := range k.deliveries(s, who, "") {
		got[d.EndpointID] = append(got[d.EndpointID], d.EventID)
		if d.Status != "pending" || len(d.Attempts) != 0 {
			t.Errorf("delivery %+v", d)
		}
	}
	if want := []string{partner.ID.String()}; !slices.Equal(got[all], want) {
		t.Errorf("* heard %v, want %v", got[all], want)
	}
	if want := []string{sale.ID.String()}; !slices.Equal(got[sales], want) {
		t.Errorf("sale.recorded heard %v, want %v", got[sales], want)
	}
	if n := len(k.deliveries(s, other, "")); n != 0 {
		t.Errorf("the other tenant has %d deliveries", n)
	}
	if n := k.count("select count(*) from events"); n != 3 {
		t.Errorf("%d events are kept, want all 3", n)
	}
}

func TestAnEventAtTheVeryMomentOfTheEndpointIsHeard(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	created, err := time.Parse(time.RFC3339Nano, k.register(s, who, "https://example.com/", "*").CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	at, earlier := joined(t, who.tenant, created), joined(t, who.tenant, created.Add(-time.Microsecond))
	k.fanOut(s, at, earlier)
	list := k.deliveries(s, who, "")
	if len(list) != 1 || list[0].EventID != at.ID.String() {
		t.Errorf("deliveries %+v, want one of %s", list, at.ID)
	}
}

func TestTheFeedOfATenantHasNoGapsHoweverManyWriteIt(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	one, two := k.service(lenient), k.service(lenient)
	tenants := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	var batches [][]event.Sealed
	for range 20 {
		var batch []event.Sealed
		for _, tenant := range tenants {
			batch = append(batch, joinedMany(t, tenant, 5)...)
		}
		slices.Reverse(batch)
		batches = append(batches, batch)
	}
	failures := make(chan error, 2*len(batches))
	var all sync.WaitGroup
	for _, batch := range batches {
		for _, s := range []*Service{one, two} { // both tell the same, which uses up nothing
			all.Go(func() { failures <- s.tell(t.Context(), batch) })
		}
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Error(err)
		}
	}
	for _, tenant := range tenants {
		n := k.count("select count(distinct position) from events where tenant_id = $1", tenant)
		highest := k.count("select max(position) from events where tenant_id = $1", tenant)
		counter := k.count("select position from tenants where tenant_id = $1", tenant)
		if n != 100 || highest != 100 || counter != 100 {
			t.Errorf("%d positions up to %d with the counter at %d, want 100", n, highest, counter)
		}
	}
}

func TestAnEventIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	s := k.service(lenient)
	e := sold(t, uuid.New(), time.Now())
	e.Body = append(e.Body, " \n"...)
	k.fanOut(s, e)
	var body []byte
	var name, parent string
	if err := k.pool.QueryRow(t.Context(), "select name, body, traceparent from events").Scan(&name, &body, &parent); err != nil {
		t.Fatal(err)
	}
	if name != e.Name || !bytes.Equal(body, e.Body) || parent != e.Traceparent {
		t.Errorf("kept %s %q %s", name, body, parent)
	}
}

func TestTheWholeStreamAgainInAnyOrderChangesNothing(t *testing.T) {
	t.Parallel()
	k := newStackWithNATS(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*", event.NameSaleRecorded)
	k.run(s.Run)
	publisher := k.connect()

	var events []event.Sealed
	for range 200 {
		events = append(events, joined(t, who.tenant, time.Now()), sold(t, who.tenant, time.Now()),
			seal(t, who.tenant, uuid.New(), time.Now(), event.CommissionAvailable{}))
	}
	k.publish(publisher, "", events...)
	testkit.Eventually(t, soon, "all are delivered", func() bool { return k.inState(stateDelivered) == len(events) })
	before := k.dump()

	k.publish(publisher, ":r1", events...)
	testkit.Eventually(t, soon, "the repeats are handled", func() bool { return lagOf(t, publisher, s) == 0 })
	if after := k.dump(); after != before {
		t.Errorf("the tables have changed:\n%s\nbefore:\n%s", after, before)
	}
	last := joined(t, who.tenant, time.Now())
	k.publish(publisher, "", last)
	testkit.Eventually(t, soon, "the last is delivered", func() bool { return k.inState(stateDelivered) == len(events)+1 })
	in.mustHaveOnce(t, append(events, last)...)
}

func TestABadEventIsParkedAndItsNeighboursAreDelivered(t *testing.T) {
	t.Parallel()
	k := newStackWithNATS(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	publisher := k.connect()

	good := joinedMany(t, who.tenant, 20)
	internal := seal(t, who.tenant, uuid.New(), time.Now(), event.PartnerChanged{PartnerID: uuid.New(), Version: 1})
	disguised := internal
	disguised.Name = event.NamePartnerCreated // the subject says one thing, the envelope another
	broken := joined(t, who.tenant, time.Now())
	broken.Body = broken.Body[:len(broken.Body)-1]
	ancient := joined(t, who.tenant, time.Now().AddDate(-1, 0, 0))
	k.publish(publisher, "", append(slices.Clone(good), disguised, broken, ancient)...)
	k.run(s.Run)

	testkit.Eventually(t, soon, "the good ones are delivered", func() bool { return k.inState(stateDelivered) == len(good) })
	testkit.Eventually(t, soon, "the bad ones are parked", func() bool { return k.count("select count(*) from parked_events") == 3 })
	in.mustHaveOnce(t, good...)
	if n := k.count("select count(*) from events"); n != len(good) {
		t.Errorf("%d events are kept, want %d", n, len(good))
	}
}
