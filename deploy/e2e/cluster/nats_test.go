package cluster

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/testkit"
)

func TestNothingIsLostOrDoubledWhileEachServerOfNATSAndEachReplicaDies(t *testing.T) {
	server := testkit.Postgres(t)
	databases := map[string]string{}
	for _, service := range stage.Services {
		if err := server.CreateDatabase(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		databases[service] = server.URL(service)
	}
	c := startCluster(t, databases)
	shop := c.openShop(t)
	b := stage.Books{Platform: c.Platform, Shop: shop}
	receipts := map[string]stage.Receipt{}

	ok := t.Run("each server of NATS", func(t *testing.T) {
		load := stage.StartLoadEvery(shop, "nats", pace)
		accept(t, load, "before")
		for i, server := range c.nats {
			server.Kill()
			accept(t, load, fmt.Sprintf("without nats-%d", i+1))
			c.keysArrive(t, shop)
			server.Start()
			accept(t, load, fmt.Sprintf("nats-%d is back", i+1))
		}
		maps.Copy(receipts, load.Stop(t, false))
		load.Print(t)
		b.Settle(t, receipts)
		b.AllDelivered(t)
		for stream, is := range c.streams(t) {
			t.Logf("%s was seen on %d processes of NATS and repaired %d times", stream, is.servers, is.repairs)
			if is.repairs >= is.servers { // one for each process after the first, which may have restarted
				t.Errorf("%s was repaired without a reason", stream)
			}
		}
	})
	ok = ok && t.Run("the leader of each stream", func(t *testing.T) { leadersChange(t, c) })
	ok = ok && t.Run("each replica", func(t *testing.T) {
		load := stage.StartLoadEvery(shop, "replicas", pace)
		load.MayBreak()
		accept(t, load, "before")
		for i := range replicas {
			for _, service := range stage.Services {
				replica := c.replicas[service][i]
				replica.Kill()
				accept(t, load, fmt.Sprintf("without %s %d", service, i+1))
				replica.Start()
			}
		}
		accept(t, load, "all are back")
		maps.Copy(receipts, load.Stop(t, true))
		load.Print(t)
		load.RepeatOpen(t)
		maps.Copy(receipts, load.Receipts())
		b.Settle(t, receipts)
		deliveredOrUnknown(t, b)
	})
	if !ok {
		t.Log("what follows a failure was not tried")
	}
}

// leadersChange has each stream led by another server, which loses nothing and must not
// be taken for a loss.
func leadersChange(t *testing.T, c *cluster) {
	conn, err := nats.Connect(c.nats.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	leader := func(stream string) string {
		found, err := js.Stream(t.Context(), stream)
		if err != nil {
			return ""
		}
		return found.CachedInfo().Cluster.Leader
	}
	before := c.streams(t)
	for stream := range owners {
		old := leader(stream)
		if _, err := conn.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, stage.Soon); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, stage.Patience, stream+" has another leader", func() bool {
			now := leader(stream)
			return now != "" && now != old
		})
	}
	for range 2 { // a look that began before the change may end after it
		c.awaitLook(t)
	}
	for stream, is := range c.streams(t) {
		if is.repairs > before[stream].repairs && is.servers == before[stream].servers {
			t.Errorf("the change of the leader was taken for a loss of %s", stream)
		}
	}
}

// owners are the services by the streams that are theirs.
var owners = map[string]string{bus.Sales.Name: "sales", bus.Commissions.Name: "commissions", bus.Goals.Name: "goals"}

// seen is what the owner of a stream remembers of it.
type seen struct{ repairs, servers int }

func (c *cluster) streams(t *testing.T) map[string]seen {
	t.Helper()
	number := func(service, column string) int {
		n, err := strconv.Atoi(c.Query(t, service, "select ("+column+")::text from outbox_stream")[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	all := map[string]seen{}
	for stream, service := range owners {
		all[stream] = seen{number(service, "repairs"), number(service, "cardinality(servers)")}
	}
	return all
}

// awaitLook waits until every owner has compared its stream with what it was.
func (c *cluster) awaitLook(t *testing.T) {
	t.Helper()
	for stream, service := range owners {
		since := c.Query(t, service, "select now()::text")[0]
		testkit.Eventually(t, stage.Patience, stream+" is looked at", func() bool {
			return c.Query(t, service, "select (checked_at > $1::timestamptz)::text from outbox_stream", since)[0] == "true"
		})
	}
}
