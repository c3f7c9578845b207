package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
)

// programs are the containers that run what this tree builds.
var programs = []string{"sales", "commissions", "goals", "webhooks", "front"}

// TestThePlatformInContainers takes the shipped file through a life: up, a sale, more
// replicas, the death of each container under load, down and up again.
func TestThePlatformInContainers(t *testing.T) {
	s := stack{environment(t)}
	took := func(what string, since time.Time) { t.Logf("%s: %s", what, time.Since(since).Round(time.Second)) }
	began := time.Now()
	s.compose(t, "up", "-d", "--wait")
	took("up", began)
	base := s.at(t, "edge", "8080")

	t.Run("its containers are confined", func(t *testing.T) { areConfined(t, s) })
	t.Run("the edge speaks for all", func(t *testing.T) { theEdgeSpeaksForAll(t, base) })
	t.Run("a role cannot enter another's database", func(t *testing.T) { rolesAreApart(t, s) })
	shop := openShop(t, s, base)
	sales := map[string]receipt{}
	t.Run("a sale goes all the way", func(t *testing.T) {
		status, sold := shop.report("first")
		if status != 201 {
			t.Fatalf("the sale is answered %d", status)
		}
		sales["first"] = sold
		balance(t, shop, sales)
	})
	began = time.Now()
	s.up(t)
	took("three of webhooks and two of sales", began)
	t.Run("every container dies and comes back", func(t *testing.T) {
		began := time.Now()
		maps.Copy(sales, sellWhile(t, shop, func() { killEach(t, s) }))
		took(fmt.Sprintf("%d sales meanwhile", len(sales)), began)
		balance(t, shop, sales)
	})
	t.Run("the data survives down and up", func(t *testing.T) {
		began := time.Now()
		t.Setenv("SALES_REPLICAS", "2") // as from .env, and so after every up
		s.compose(t, "down", "--remove-orphans")
		s.compose(t, "up", "-d", "--wait")
		took("down and up", began)
		if replicas := s.containers(t, "sales"); len(replicas) != 2 {
			t.Errorf("%d replicas of sales are up, want those that SALES_REPLICAS says", len(replicas))
		}
		shop.base, shop.receiver = s.at(t, "edge", "8080"), s.at(t, "receiver", "8080")
		for ref, sold := range sales {
			if status, again := shop.report(ref); status != 200 || again != sold {
				t.Fatalf("%s is answered %d %+v, and was %+v", ref, status, again, sold)
			}
		}
		status, sold := shop.report("after")
		if status != 201 {
			t.Fatalf("a new sale is answered %d", status)
		}
		testkit.Eventually(t, patience, "its webhook comes", func() bool { return shop.heard(t)[sold.SaleID] == 1 })
		if heard := shop.heard(t); len(heard) != 1 {
			t.Errorf("webhooks of %d sales come, though all but one had come before", len(heard))
		}
	})
	t.Run("the edge says so where a service is away", func(t *testing.T) { theEdgeMissesGoals(t, s, shop) })
	t.Run("the demo shows its webhook", func(t *testing.T) {
		shown := run(t, "deploy/docker/demo", "-p", project, "--env-file", s.secrets)
		if !strings.Contains(shown, "201 Created") || !strings.Contains(shown, "signature verified") {
			t.Errorf("the demo shows\n%s", shown)
		}
	})
	t.Run("the edge speaks TLS once it has a name", func(t *testing.T) { theEdgeSpeaksTLS(t, s, s.at(t, "edge", "8080")) })
}

func areConfined(t *testing.T, s stack) {
	for _, service := range append(slices.Clone(programs), "nats", "edge", "postgres") {
		for _, container := range s.containers(t, service) {
			is := inspect(t, container)
			if is.State.Health.Status != "healthy" || is.HostConfig.RestartPolicy.Name != "unless-stopped" {
				t.Errorf("%s is %s, and started again: %s", is.Name, is.State.Health.Status, is.HostConfig.RestartPolicy.Name)
			}
			if !slices.Contains(is.HostConfig.SecurityOpt, "no-new-privileges:true") {
				t.Errorf("%s may gain rights", is.Name)
			}
			if service != "postgres" && (!is.HostConfig.ReadonlyRootfs || !slices.Contains(is.HostConfig.CapDrop, "ALL")) {
				t.Errorf("%s may write to its root or keeps the capabilities of root", is.Name)
			}
			if service != "edge" && slices.ContainsFunc(slices.Collect(maps.Keys(is.NetworkSettings.Ports)), func(port string) bool { return len(is.NetworkSettings.Ports[port]) > 0 }) {
				t.Errorf("%s is published: %v", is.Name, is.NetworkSettings.Ports)
			}
			_, mayGoOut := is.NetworkSettings.Networks[project+"_outside"]
			if mayGoOut != (service == "webhooks" || service == "edge") {
				t.Errorf("%s is in the networks %v", is.Name, slices.Collect(maps.Keys(is.NetworkSettings.Networks)))
			}
			if !slices.Contains(programs, service) {
				continue
			}
			if is.Config.User != "65532:65532" {
				t.Errorf("%s runs as %q", is.Name, is.Config.User)
			}
			if said := run(t, "docker", "exec", container, "/service", "version"); said != service+" trial (of-the-test)" {
				t.Errorf("%s says that it is %q", is.Name, said)
			}
			if _, err := try("docker", "exec", container, "/bin/sh", "-c", "true"); err == nil {
				t.Errorf("%s has a shell", is.Name)
			}
		}
		if slices.Contains(programs, service) {
			t.Logf("the image of %s has %s bytes", service, run(t, "docker", "image", "inspect", "-f", "{{.Size}}", "partilha-"+service+":trial"))
		}
	}
	if internal := run(t, "docker", "network", "inspect", "-f", "{{.Internal}}", project+"_inside"); internal != "true" {
		t.Error("the network of the services leads out")
	}
}

func rolesAreApart(t *testing.T, s stack) {
	for _, row := range []struct {
		role, database string
		may            bool
	}{{"goals", "goals", true}, {"goals", "sales", false}, {"sales", "commissions", false}, {"webhooks", "goals", false}} {
		url := fmt.Sprintf("postgres://%s:%s@127.0.0.1/partilha_%s", row.role, secret(t, s, strings.ToUpper(row.role)+"_DATABASE_PASSWORD"), row.database)
		_, err := try("docker", s.arguments("exec", "-T", "postgres", "psql", "-qtA", url, "-c", "select 1")...)
		if (err == nil) != row.may {
			t.Errorf("%s enters the database of %s: %v", row.role, row.database, err)
		}
	}
}

// sellWhile reports sales from several callers, each until it is answered, while what is
// to happen happens, and then as many again that nothing disturbs.
func sellWhile(t *testing.T, shop *shop, happens func()) map[string]receipt {
	t.Helper()
	const callers, pause = 4, 100 * time.Millisecond
	ended := make(chan struct{})
	var all sync.Map
	var callersDone sync.WaitGroup
	for c := range callers {
		callersDone.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-ended:
					return
				case <-time.After(pause): // so the load is bounded, and this is no test of speed
				}
				ref := fmt.Sprintf("storm-%d-%d", c, i)
				for since := time.Now(); ; time.Sleep(pause) {
					status, sold := shop.report(ref)
					if status == 200 || status == 201 {
						all.Store(ref, sold)
						break
					}
					if status != 0 && status < 500 || time.Since(since) > patience {
						t.Errorf("%s is answered %d", ref, status)
						return
					}
				}
			}
		})
	}
	func() {
		defer callersDone.Wait()
		defer close(ended)
		happens()
	}()
	sales := map[string]receipt{}
	all.Range(func(ref, sold any) bool {
		sales[ref.(string)] = sold.(receipt)
		return true
	})
	return sales
}

// killEach kills every container as kill -9 does, one after the other, and has it back
// before the next.
func killEach(t *testing.T, s stack) {
	t.Helper()
	for _, service := range append([]string{"nats", "postgres", "edge"}, programs...) {
		for _, container := range s.containers(t, service) {
			run(t, "docker", "kill", "--signal", "KILL", container)
			run(t, "docker", "start", container)
		}
		s.up(t)
	}
}

// balance waits until everything has followed from the sales, and fails where anything is
// missing or there twice.
func balance(t *testing.T, shop *shop, sales map[string]receipt) {
	t.Helper()
	type commission struct {
		ID     string `json:"commission_id"`
		SaleID string `json:"source_sale_id"`
	}
	var commissions []commission
	testkit.Eventually(t, patience, "every sale has its commission", func() bool {
		commissions = each[commission](t, shop, "/api/v1/commissions")
		return len(commissions) >= len(sales)
	})
	earned := map[string]string{}
	for _, c := range commissions {
		if earned[c.SaleID] != "" {
			t.Errorf("sale %s has two commissions", c.SaleID)
		}
		earned[c.SaleID] = c.ID
	}
	recorded := each[receipt](t, shop, "/api/v1/sales")
	if len(recorded) != len(sales) || len(earned) != len(sales) {
		t.Errorf("%d sales were answered, %d are recorded, %d have a commission", len(sales), len(recorded), len(earned))
	}
	for ref, sold := range sales {
		if sold.SaleID == "" || earned[sold.SaleID] != sold.CommissionID {
			t.Errorf("%s was answered %+v, and its commission is %s", ref, sold, earned[sold.SaleID])
		}
	}
	var verdict struct{ OK bool }
	shop.must(t, 200, "GET", "/api/v1/ledger/verify", nil, &verdict)
	if !verdict.OK {
		t.Error("the books do not balance")
	}
	type delivery struct{ Status string }
	var unknown int
	testkit.Eventually(t, patience, "every webhook has an outcome", func() bool {
		deliveries := each[delivery](t, shop, "/api/v1/webhook-deliveries")
		unknown = 0
		for _, d := range deliveries {
			if d.Status == "unknown" {
				unknown++
			} else if d.Status != "delivered" {
				return false
			}
		}
		return len(deliveries) == len(sales)
	})
	heard := shop.heard(t)
	for sale, times := range heard {
		if times != 1 {
			t.Errorf("the webhook of sale %s came %d times", sale, times)
		}
	}
	// A webhook under way when its sender died may or may not have arrived.
	if missing := len(sales) - len(heard); missing > unknown {
		t.Errorf("%d webhooks are missing and only %d outcomes are unknown", missing, unknown)
	}
	t.Logf("%d sales, each with one commission; %d webhooks, %d of unknown outcome", len(sales), len(heard), unknown)
}
