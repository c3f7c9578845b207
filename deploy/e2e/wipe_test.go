package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"partilha.dev/deploy/e2e/stage"

	"github.com/google/uuid"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

// agreeWithin is how long after NATS is back everything that was acknowledged by then may
// take to have followed.
const agreeWithin = time.Minute

// wipeLoadEvery is the pace of each caller. After each wipe all sales so far are published
// again, and so is everything that follows from them.
const wipeLoadEvery = 50 * time.Millisecond

// wipes is how often NATS loses everything: twenty times where the environment asks for
// the full run.
func wipes() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 20
	}
	return 2
}

func TestUnderLoadEverythingAgreesWithinAMinuteOfEachReturnOfNATSWithoutItsData(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	load := stage.StartLoadEvery(shop, "order", wipeLoadEvery)
	accept := func(when string, sales int) {
		t.Helper()
		before := load.Answered(201)
		testkit.Eventually(t, stage.Patience, "sales are accepted "+when, func() bool { return load.Answered(201) >= before+sales })
	}
	for round := range wipes() {
		accept("while all is well", 1+chance.IntN(60))
		p.NATS.Kill()
		p.NATS.Wipe()
		accept("without NATS", 1+chance.IntN(60))
		p.NATS.Start()
		back := time.Now()
		acknowledged := load.Receipts()
		awaitArrival(t, p, shop, acknowledged)
		t.Logf("wipe %d: %d sales agree everywhere %s after the return", round+1, len(acknowledged), time.Since(back).Round(time.Millisecond))
	}
	receipts := load.Stop(t, false)
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, receipts)
	b.AllDelivered(t)
	for _, owner := range []string{"sales", "commissions", "goals"} {
		said := p.Processes[owner].MustRun("reconcile", "now")
		if !strings.Contains(said, "; 0 were missing") {
			t.Errorf("in the end %s says: %s", owner, said)
		}
	}
}

// awaitArrival waits until each of the sales has its one commission, its fact, its two
// events in the feed, and has been told to the receiver, within a minute.
func awaitArrival(t *testing.T, p *stage.Platform, s *stage.Shop, receipts map[string]stage.Receipt) {
	t.Helper()
	var sales []string
	var events [][16]byte
	for _, r := range receipts {
		sales = append(sales, r.SaleID)
		events = append(events, event.IDOf(event.NameSaleRecorded, r.SaleID), event.IDOf(event.NameCommissionAvailable, r.CommissionID))
	}
	seen := func(service, query string, ids any, want int) bool {
		return p.Query(t, service, query, s.TenantID, ids)[0] == fmt.Sprint(want)
	}
	testkit.Eventually(t, agreeWithin, "everything agrees", func() bool {
		counts := s.Receiver.Counts()
		for _, id := range events {
			if counts[event.ID(id).String()] == 0 {
				return false
			}
		}
		return seen("commissions", "select count(*)::text from commissions where tenant_id = $1 and source_sale_id = any($2::uuid[])", sales, len(sales)) &&
			seen("goals", "select count(*)::text from facts where tenant_id = $1 and kind = 'sale' and source_id = any($2::uuid[])", sales, len(sales)) &&
			seen("webhooks", "select count(*)::text from events where tenant_id = $1 and event_id = any($2::uuid[])", events, len(events))
	})
}

func TestAnOperatorHasAGapFilledAndSeesWhatDoesNotAgree(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	receipts := shop.SellMany(t, "order", 3)
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, receipts)
	js := connect(t, p)
	awaitQuiet(t, p, js)

	stream, err := js.Stream(t.Context(), bus.Sales.Name)
	if err != nil {
		t.Fatal(err)
	}
	message, err := stream.GetLastMsgForSubject(t.Context(), event.NameSaleRecorded)
	if err != nil {
		t.Fatal(err)
	}
	id := message.Header.Get("Nats-Msg-Id")
	if err := stream.DeleteMsg(t.Context(), message.Sequence); err != nil {
		t.Fatal(err)
	}
	sales := p.Processes["sales"]
	sales.Stop()
	// What has just been made may be on its way, and is not expected on the stream.
	p.Exec(t, "sales", "update outbox set created_at = created_at - interval '1 minute'")
	if said := sales.MustRun("reconcile", "now"); !strings.Contains(said, "; 1 were missing") || !strings.Contains(said, id) {
		t.Errorf("reconcile now says: %s", said)
	}
	if said := sales.MustRun("outbox", "status"); !regexp.MustCompile(`(?m)^pending +1 events$`).MatchString(said) || !strings.Contains(said, "SALES") {
		t.Errorf("outbox status says: %s", said)
	}
	sales.Start()
	testkit.Eventually(t, stage.Patience, "the message is back", func() bool {
		last, err := stream.GetLastMsgForSubject(t.Context(), event.NameSaleRecorded)
		return err == nil && last.Sequence > message.Sequence && strings.HasPrefix(last.Header.Get("Nats-Msg-Id"), id+":r")
	})
	awaitQuiet(t, p, js)
	b.Settle(t, receipts)
	if said := sales.MustRun("reconcile", "now"); !strings.Contains(said, "; 0 were missing") {
		t.Errorf("once it is back, reconcile now says: %s", said)
	}

	start := time.Now().UTC().Add(-time.Hour).Truncate(time.Minute)
	window, err := event.Window{Start: start, End: start.Add(time.Minute), CountedAt: time.Now(),
		Events: map[string]event.Tally{event.NameSaleRecorded: {Count: 2, Centavos: 20100, Commissions: 1006}}}.Seal(bus.Sales.WindowName())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), window.Name, window.Body); err != nil {
		t.Fatal(err)
	}
	name := "SALES/" + start.Format(time.RFC3339)
	for _, consumer := range []string{"commissions-earn", "goals-count", "webhooks-sales"} {
		service, _, _ := strings.Cut(consumer, "-")
		testkit.Eventually(t, stage.Soon, consumer+" has heard of the window", func() bool {
			return p.Query(t, service, "select count(*)::text from windows where consumer = $1 and started_at = $2", consumer, start)[0] == "1"
		})
		for _, args := range [][]string{{"reconcile", "now"}, {"outbox", "status"}} {
			said := p.Processes[service].MustRun(args...)
			if !strings.Contains(said, name) || !strings.Contains(said, consumer) || !strings.Contains(said, "2 events were told, 0 are here") {
				t.Errorf("%s %v says: %s", service, args, said)
			}
		}
	}
	unknown := "select count(*)::text from events where event_id = $1"
	if got := p.Query(t, "webhooks", unknown, uuid.UUID(window.ID))[0]; got != "0" {
		t.Error("the window is in the feed")
	}
}
