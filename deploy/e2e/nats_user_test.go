package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

// guardedNATS is a NATS server with the users of deploy/nats/nats.conf.
type guardedNATS struct {
	*server.Server
	mu      sync.Mutex
	refused []string
}

var natsConfiguration = filepath.Join(root, "deploy", "nats", "nats.conf")

func natsPassword(service string) string { return "p-" + service }

func startGuardedNATS(t *testing.T) *guardedNATS {
	t.Helper()
	for _, service := range stage.Services {
		t.Setenv("NATS_"+strings.ToUpper(service)+"_PASSWORD", natsPassword(service))
	}
	options, err := server.ProcessConfigFile(natsConfiguration)
	if err != nil {
		t.Fatal(err)
	}
	if options.SyncInterval <= 0 || options.SyncInterval > 30*time.Second {
		t.Errorf("the server writes to disk every %s; services publish again the last minute only", options.SyncInterval)
	}
	options.Host, options.Port, options.HTTPPort, options.StoreDir, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, 0, t.TempDir(), true
	g := &guardedNATS{}
	if g.Server, err = server.NewServer(options); err != nil {
		t.Fatal(err)
	}
	g.SetLoggerV2(g, false, false, false)
	go g.Start()
	t.Cleanup(func() { g.Shutdown(); g.WaitForShutdown() })
	if !g.ReadyForConnections(stage.Patience) {
		t.Fatal("NATS is not ready")
	}
	return g
}

func (g *guardedNATS) urlOf(user string) string {
	return fmt.Sprintf("nats://%s:%s@%s", user, natsPassword(user), g.Addr())
}

// The server logs through these; what it refuses is an error to it.
func (g *guardedNATS) Errorf(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = append(g.refused, fmt.Sprintf(format, args...))
}
func (g *guardedNATS) Noticef(string, ...any) {}
func (g *guardedNATS) Warnf(string, ...any)   {}
func (g *guardedNATS) Fatalf(string, ...any)  {}
func (g *guardedNATS) Debugf(string, ...any)  {}
func (g *guardedNATS) Tracef(string, ...any)  {}

func (g *guardedNATS) violations() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.refused)
}

// consumers are the durable consumers that exist, each as STREAM.NAME.
func (g *guardedNATS) consumers(t *testing.T) (found []string) {
	t.Helper()
	state, err := g.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true, Config: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range state.AccountDetails {
		for _, stream := range account.Streams {
			for _, consumer := range stream.Consumer {
				if consumer.Config != nil && consumer.Config.Durable != "" {
					found = append(found, stream.Name+"."+consumer.Name)
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// publish has a user put a message on a stream.
func (g *guardedNATS) publish(t *testing.T, user, subject string) {
	t.Helper()
	conn, err := nats.Connect(g.urlOf(user), nats.CustomInboxPrefix("_INBOX."+user))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), subject, []byte("{}")); err != nil {
		t.Errorf("%s cannot publish %s: %v", user, subject, err)
	}
}

var acknowledged = regexp.MustCompile(`\$JS\.ACK\.([A-Z]+\.[a-z-]+)\.>`)

func TestTheServicesCanDoTheirWorkAsTheNATSUsersThatAreShipped(t *testing.T) {
	guarded := startGuardedNATS(t)
	p := stage.NewPlatform(t)
	for service, process := range p.Processes {
		process.Env = append(process.Env, "NATS_URL="+guarded.urlOf(service))
	}
	p.Start()
	shop := stage.OpenShop(t, p)
	receipts := shop.SellMany(t, "sale", stage.GoalTarget)
	stage.Books{Platform: p, Shop: shop}.Settle(t, receipts)
	testkit.Eventually(t, stage.Soon, "the goal is told of", func() bool { return len(shop.Receiver.Of("goal.reached")) == 1 })
	shop.Receiver.AssertOnce(t)

	text, err := os.ReadFile(natsConfiguration)
	if err != nil {
		t.Fatal(err)
	}
	var allowed []string
	for _, found := range acknowledged.FindAllStringSubmatch(string(text), -1) {
		allowed = append(allowed, found[1])
	}
	slices.Sort(allowed)
	testkit.Eventually(t, stage.Soon, "every consumer that the users may have is there, and no other", func() bool {
		return slices.Equal(allowed, guarded.consumers(t))
	})
	for _, owner := range []string{"sales", "commissions", "goals"} { // which they do every half minute
		p.Processes[owner].MustRun("reconcile", "now")
		guarded.publish(t, owner, "window."+owner)
	}
	if refused := guarded.violations(); len(refused) > 0 {
		t.Errorf("the services are refused what they do:\n%s", strings.Join(refused, "\n"))
	}
}

func TestANATSUserCanDoNothingInTheNameOfAnotherService(t *testing.T) {
	guarded := startGuardedNATS(t)
	neighbour := map[string]string{"sales": "goals", "commissions": "sales", "goals": "webhooks", "webhooks": "commissions"}
	for user, forbidden := range map[string][]string{
		"sales":       {"commission.available", "goal.reached", "$JS.API.STREAM.DELETE.SALES", "$JS.API.STREAM.PURGE.SALES", "$JS.API.STREAM.INFO.GOALS"},
		"commissions": {"sale.recorded", "window.sales", "$JS.API.CONSUMER.MSG.NEXT.SALES.reconciler", "goal.reached", "$KV.keys.x", "$JS.ACK.SALES.goals-count.1.1.1.1.0", "$JS.API.CONSUMER.CREATE.SALES.spy"},
		"goals":       {"sale.recorded", "commission.available", "$KV.keys.x", "$JS.API.CONSUMER.MSG.NEXT.SALES.commissions-earn", "$JS.API.STREAM.CREATE.SPY"},
		"webhooks":    {"sale.recorded", "commission.available", "goal.reached", "withdrawal.requested", "$KV.keys.x", "$JS.API.STREAM.MSG.GET.SALES"},
	} {
		refused := make(chan error, 16)
		conn, err := nats.Connect(guarded.urlOf(user), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		expect := func(what string) {
			t.Helper()
			select {
			case err := <-refused:
				if !strings.Contains(err.Error(), "ermissions") {
					t.Errorf("%s %s: %v", user, what, err)
				}
			case <-time.After(stage.Soon):
				t.Errorf("%s %s, and nobody minds", user, what)
			}
		}
		for _, subject := range forbidden {
			if err := conn.Publish(subject, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			expect("publishes " + subject)
		}
		for _, subject := range []string{">", "sale.*", "_INBOX.>", "_INBOX." + neighbour[user] + ".>", "$KV.keys.>"} {
			if _, err := conn.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			expect("listens to " + subject)
		}
	}
	for _, url := range []string{"nats://" + guarded.Addr().String(), "nats://sales:wrong@" + guarded.Addr().String()} {
		if conn, err := nats.Connect(url); err == nil {
			conn.Close()
			t.Errorf("%s gets in", url)
		}
	}
}
