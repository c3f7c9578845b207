package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/testkit"
)

func TestTheWholeStreamAgainInAnyOrderChangesNothing(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))

	p := stage.StartPlatform(t)
	js := connect(t, p)
	for range 2 {
		shop := stage.OpenShop(t, p)
		receipts := shop.SellMany(t, "order", 12)
		for _, name := range []string{"Ana Lima", "Ana Souza"} {
			shop.Must(t, 200, "PATCH", "/api/v1/partners/"+shop.PartnerID, stage.Object{"name": name})
		}
		b := stage.Books{Platform: p, Shop: shop}
		b.Settle(t, receipts)
		b.AllDelivered(t)
		defer shop.Receiver.AssertOnce(t)
	}
	awaitQuiet(t, p, js)
	before := dump(t, p)
	for _, table := range []string{"sales.sales", "commissions.commissions", "goals.reached", "webhooks.deliveries"} {
		if len(before[table]) == 0 {
			t.Errorf("%s is empty: the comparison would tell nothing", table)
		}
	}

	again := everyMessage(t, js)
	kinds := map[string]bool{}
	chance.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	for i, m := range again {
		m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%s:again-%d", m.Header.Get(nats.MsgIdHdr), i))
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		kinds[m.Subject] = true
	}
	for _, subject := range []string{"sale.recorded", "partner.created", "partner.changed", "commission.available", "goal.reached"} {
		if !kinds[subject] {
			t.Errorf("no %s was delivered again", subject)
		}
	}
	awaitQuiet(t, p, js)
	after := dump(t, p)
	for table, rows := range before {
		stage.SameRows(t, table, rows, after[table])
	}
	if len(before) != len(after) {
		t.Errorf("there were %d tables, there are %d", len(before), len(after))
	}
}

// connect is a client of the platform's NATS beside the services.
func connect(t testing.TB, p *stage.Platform) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(p.NATS.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

var streams = []string{bus.Sales.Name, bus.Commissions.Name, bus.Goals.Name}

// everyMessage reads all that the streams hold.
func everyMessage(t testing.TB, js jetstream.JetStream) (all []*nats.Msg) {
	t.Helper()
	for _, name := range streams {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		reader, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for range stream.CachedInfo().State.Msgs {
			m, err := reader.Next(jetstream.FetchMaxWait(stage.Soon))
			if err != nil {
				t.Fatalf("read %s: %v", name, err)
			}
			all = append(all, &nats.Msg{Subject: m.Subject(), Data: m.Data(), Header: nats.Header{nats.MsgIdHdr: {m.Headers().Get(nats.MsgIdHdr)}}})
		}
	}
	return all
}

// awaitQuiet waits until every event is published and no durable consumer has anything
// left to do. What a consumer makes of its last message is published before that is so.
func awaitQuiet(t testing.TB, p *stage.Platform, js jetstream.JetStream) {
	t.Helper()
	testkit.Eventually(t, stage.Patience, "every event is published and handled", func() bool {
		return allHandled(t, js) && allPublished(t, p) && allHandled(t, js)
	})
}

func allPublished(t testing.TB, p *stage.Platform) bool {
	t.Helper()
	for _, owner := range []string{"sales", "commissions", "goals"} {
		if p.Query(t, owner, "select count(*)::text from outbox_pending")[0] != "0" {
			return false
		}
	}
	return true
}

func allHandled(t testing.TB, js jetstream.JetStream) bool {
	t.Helper()
	consumers := 0
	for _, name := range streams {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		list := stream.ListConsumers(t.Context())
		for info := range list.Info() {
			if info.Config.Durable == "" {
				continue
			}
			consumers++
			if info.NumPending > 0 || info.NumAckPending > 0 {
				return false
			}
		}
		if list.Err() != nil {
			t.Fatal(list.Err())
		}
	}
	return consumers > 0
}

// dump is every row of every table of every service, but for the notes of what has
// been handled, of the condition of the streams, and of the windows that were told.
func dump(t testing.TB, p *stage.Platform) map[string][]string {
	t.Helper()
	tables := map[string][]string{}
	for _, service := range stage.Services {
		for _, table := range p.Query(t, service, `
			select relname::text from pg_class where relnamespace = 'public'::regnamespace
			and relkind in ('r', 'p') and not relispartition and relname not in ('receipts', 'outbox_stream', 'outbox_drained', 'outbox_uncounted', 'outbox_windows', 'windows')`) {
			rows := p.Query(t, service, fmt.Sprintf("select t::text from %q t where t::text not like '%%,window.%%'", table))
			tables[service+"."+table] = slices.Sorted(slices.Values(rows))
		}
	}
	return tables
}
