// Package cluster tests Partilha with nothing in it that is there only once: two replicas
// of each service, three servers of NATS, and two of PostgreSQL of which one follows the
// other. Each of them dies while sales come in, and everything is counted in the end.
//
// They take a machine for themselves, for minutes: make cluster-test runs them, and make
// test leaves them to it. With E2E_FULL=1 in the environment there are ten times as many
// sales. How long a sale takes meanwhile is
// printed, and nothing depends on it.
package cluster

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	servers  = 3                     // of NATS
	replicas = 2                     // of each service
	pace     = 60 * time.Millisecond // of each caller of the load: some 65 sales a second of all
)

// salesOfPhase is how many sales are accepted before anything else is killed.
func salesOfPhase() int {
	if os.Getenv("E2E_FULL") != "" {
		return 1000
	}
	return 100
}

// cluster is Partilha with two replicas of each service, on three servers of NATS.
type cluster struct {
	*stage.Platform // its processes are the first replicas
	nats            testkit.NATSCluster
	replicas        map[string][]*stage.Process
	turn            atomic.Uint64
}

// startCluster brings everything up on four empty databases, by service.
func startCluster(t *testing.T, databases map[string]string) *cluster {
	t.Helper()
	c := &cluster{nats: testkit.NewNATSCluster(t, servers), replicas: map[string][]*stage.Process{}}
	c.Platform = &stage.Platform{Pools: stage.OpenPools(t, databases), Processes: map[string]*stage.Process{}}
	for _, service := range stage.Services {
		env := append(stage.Settings(service, databases[service], c.nats.URL()), fmt.Sprint("NATS_REPLICAS=", servers),
			"MIGRATE=on", "WEBHOOKS_TIMEOUT=2s", "WEBHOOKS_LEASE=4s")
		for range replicas {
			replica := stage.NewProcess(t, service, env...)
			c.replicas[service] = append(c.replicas[service], replica)
			replica.Start()
		}
		c.Processes[service] = c.replicas[service][0]
	}
	return c
}

// BaseFor spreads calls over the replicas that run.
func (c *cluster) BaseFor(path string) string {
	all := c.replicas[stage.OwnerOf(path)]
	first := int(c.turn.Add(1) % replicas)
	for i := range all {
		if replica := all[(first+i)%len(all)]; replica.Runs() {
			return replica.Base()
		}
	}
	return all[first].Base()
}

// openShop opens a shop whose key every replica knows.
func (c *cluster) openShop(t *testing.T) *stage.Shop {
	t.Helper()
	shop := stage.OpenShop(t, c)
	c.awaitKey(t, shop.Token, 200)
	return shop
}

// awaitKey waits until every replica answers the key with that status.
func (c *cluster) awaitKey(t *testing.T, key string, status int) {
	t.Helper()
	for _, service := range stage.Services {
		for i, replica := range c.replicas[service] {
			anyone := stage.Caller{System: stage.At{Process: replica}, Token: key}
			testkit.Eventually(t, stage.Patience, fmt.Sprintf("replica %d of %s answers the key with %d", i+1, service, status), func() bool {
				return anyone.Call(t, "GET", stage.Anywhere[service], nil).Status == status
			})
		}
	}
}

// keysArrive makes a key and revokes it, and waits until every replica knows of both.
func (c *cluster) keysArrive(t *testing.T, shop *stage.Shop) {
	t.Helper()
	scopes := []string{"sales:read", "commissions:read", "goals:read", "webhooks:read"}
	made := shop.Must(t, 201, "POST", "/api/v1/api-keys", stage.Object{"name": "another", "scopes": scopes})
	c.awaitKey(t, made.Text("api_key"), 200)
	shop.Must(t, 204, "DELETE", "/api/v1/api-keys/"+made.Text("api_key_id"), nil)
	c.awaitKey(t, made.Text("api_key"), 401)
}

// accept waits until that many more sales were accepted, in a phase of that name.
func accept(t *testing.T, load *stage.Load, phase string) {
	t.Helper()
	load.Phase(phase)
	enough := load.Answered(201) + salesOfPhase()
	testkit.Eventually(t, stage.Patience, "sales are accepted "+phase, func() bool { return load.Answered(201) >= enough })
}

// deliveredOrUnknown fails unless every webhook arrived once, or its delivery says that
// nobody can know, since the worker or its database died while it was under way.
func deliveredOrUnknown(t *testing.T, b stage.Books) {
	t.Helper()
	states, events := b.States(t), b.EventIDs(t, "true")
	t.Logf("%d webhooks: %v", len(events), states)
	if states["delivered"]+states["unknown"] != len(events) {
		t.Errorf("deliveries are %v, want %d delivered or unknown", states, len(events))
	}
	counts := b.Receiver.Counts()
	for _, id := range b.EventIDs(t, "state = 'delivered'") {
		if counts[id] != 1 {
			t.Errorf("%s is delivered and was received %d times", id, counts[id])
		}
	}
}
