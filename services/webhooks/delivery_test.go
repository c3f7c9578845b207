package webhooks

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
)

const deliveriesPath = "/api/v1/webhook-deliveries"

func TestADeliveryIDTellsTheMillisecondOfItsEvent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 14, 13, 5, 9, 120_431_000, time.UTC)
	eventID, endpoint := event.IDOf("partner.created", "one"), uuid.New()
	one, other := deliveryIDOf(at, eventID, endpoint), deliveryIDOf(at, eventID, uuid.New())
	if again := deliveryIDOf(at, eventID, endpoint); again != one {
		t.Errorf("the same event and endpoint have two deliveries, %s and %s", one, again)
	}
	if one == other || other == deliveryIDOf(at, event.IDOf("partner.created", "two"), endpoint) || one.Version() != 7 || one.Variant() != uuid.RFC4122 || one.String()[:13] != other.String()[:13] {
		t.Errorf("ids %s and %s", one, other)
	}
	from, to := createdWithin(one)
	if !from.Equal(at.Truncate(time.Millisecond)) || !to.Equal(from.Add(time.Millisecond)) {
		t.Errorf("created from %s to %s, want around %s", from, to, at)
	}
}

func TestDeliveriesAreListedByTheAgeOfTheirEvents(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, stranger := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(lenient)
	first := k.register(s, who, "https://example.com/1", "*").EndpointID
	k.register(s, who, "https://example.com/2", event.NameSaleRecorded)
	k.exec("update endpoints set created_at = created_at - interval '20 days'")
	var events []event.Sealed
	for i := range 7 {
		at := time.Now().Add(-time.Duration(i) * 50 * time.Hour)
		events = append(events, joined(t, who.tenant, at), sold(t, who.tenant, at.Add(-time.Hour)))
	}
	k.fanOut(s, events...)

	var got, ofFirst []string
	for path := deliveriesPath + "?limit=3"; path != ""; {
		var page wirePage
		k.ask(s, who, "GET", path, "").must(200, &page)
		for _, d := range page.Data {
			got = append(got, d.EventID)
		}
		path = ""
		if page.NextCursor != nil {
			if len(page.Data) != 3 {
				t.Errorf("a page that is not the last has %d rows", len(page.Data))
			}
			path = deliveriesPath + "?limit=3&cursor=" + *page.NextCursor
		}
	}
	for _, d := range k.deliveries(s, who, "&endpoint_id="+first) {
		ofFirst = append(ofFirst, d.EventID)
	}
	var want, wantOfFirst []string
	for _, e := range events {
		want = append(want, e.ID.String())
		if e.Name == event.NamePartnerCreated {
			wantOfFirst = append(wantOfFirst, e.ID.String())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if !slices.Equal(ofFirst, wantOfFirst) {
		t.Errorf("of the endpoint %v, want %v", ofFirst, wantOfFirst)
	}
	if n := len(k.deliveries(s, stranger, "")) + len(k.deliveries(s, stranger, "&endpoint_id="+first)); n != 0 {
		t.Errorf("a stranger sees %d deliveries", n)
	}
	for _, query := range []string{"?limit=0", "?cursor=abc", "?endpoint_id=1", "?status=lost", "?event=sale", "?from=2026-07-14"} {
		k.ask(s, who, "GET", deliveriesPath+query, "").refused(400, "invalid_parameter")
	}
}

func TestAnotherTenantsDeliveryReadsLikeNone(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	owner, stranger := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, owner, "https://example.com/", "*")
	k.fanOut(s, joined(t, owner.tenant, time.Now()))
	theirs := k.deliveries(s, owner, "")[0].DeliveryID
	mustBeAlike(t,
		k.ask(s, stranger, "GET", deliveriesPath+"/"+theirs, ""),
		k.ask(s, stranger, "GET", deliveriesPath+"/"+uuid.NewString(), ""))
	k.ask(s, owner, "GET", deliveriesPath+"/"+uuid.Must(uuid.NewV7()).String(), "").refused(404, "not_found")
	k.ask(s, owner, "GET", deliveriesPath+"/x", "").refused(400, "invalid_parameter")

	var pending wire
	k.ask(s, owner, "GET", deliveriesPath+"/"+theirs, "").must(200, &pending)
	if pending.Status != "pending" || pending.Request == nil || pending.Request.URL != "https://example.com/" {
		t.Errorf("the owner reads %+v", pending)
	}
}
