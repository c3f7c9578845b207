package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"partilha.dev/deploy/e2e/stage"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/pgserver"
	"partilha.dev/pkg/testkit"
)

// backup runs a script of deploy/backup on the platform's databases, with the programs
// of the server that they live in. It is not told where the excepted ones are.
func backup(t testing.TB, p *stage.Platform, script, folder string, except ...string) stage.Finished {
	t.Helper()
	programs, err := pgserver.Find()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(root, "deploy", "backup", script), folder)
	cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH")}
	for service, pool := range p.Pools {
		if slices.Contains(except, service) {
			continue
		}
		cmd.Env = append(cmd.Env, strings.ToUpper(service)+"_DATABASE_URL="+pool.Config().ConnString())
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the status tells
	return stage.Finished{Status: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// destroy ends every process with kill -9 and leaves empty databases and an empty NATS
// that does not run.
func destroy(t testing.TB, p *stage.Platform) {
	t.Helper()
	for _, service := range stage.Services {
		p.Processes[service].Kill()
	}
	p.NATS.Kill()
	p.NATS.Wipe()
	for _, service := range stage.Services {
		p.Pools[service].Reset()
		config := p.Pools[service].Config().ConnConfig.Copy()
		name := pgx.Identifier{config.Database}.Sanitize()
		config.Database = "postgres"
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, statement := range []string{"drop database " + name + " with (force)", "create database " + name + " template template0"} {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
}

// comeBack is what an operator does with restored databases until the platform runs.
func comeBack(t testing.TB, p *stage.Platform) {
	t.Helper()
	p.NATS.Start()
	catchUp := func(service string) {
		t.Helper()
		if said := p.Processes[service].MustRun("catch-up"); said != "every event is published, and handled or parked" {
			t.Errorf("%s catch-up says %q", service, said)
		}
	}
	for _, service := range []string{"sales", "goals", "commissions"} {
		catchUp(service)
	}
	p.Processes["webhooks"].MustRun("restored", "now")
	catchUp("webhooks")
	p.Start()
}

func TestABackupUnderLoadIsRestoredWholeAndNothingIsSentAgain(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	b := stage.Books{Platform: p, Shop: shop}
	load := stage.StartLoad(shop, "order")
	accepted := func(more int) {
		t.Helper()
		before := load.Answered(201)
		testkit.Eventually(t, stage.Patience, "sales are accepted", func() bool { return load.Answered(201) >= before+more })
	}
	accepted(100)
	testkit.Eventually(t, stage.Patience, "the goal is told of", func() bool { return len(shop.Receiver.Of("goal.reached")) == 1 })

	folder := filepath.Join(t.TempDir(), "backup")
	if saved := backup(t, p, "save", folder); saved.Status != 0 {
		t.Fatalf("save ends with status %d and says %s", saved.Status, saved.Stderr)
	}
	accepted(100)
	receipts := load.Stop(t, false)
	destroy(t, p)
	sent := shop.Receiver.Counts()

	if done := backup(t, p, "restore", folder); done.Status != 0 {
		t.Fatalf("restore ends with status %d and says %s", done.Status, done.Stderr)
	}
	count := func(service, table string) (n int) {
		t.Helper()
		fmt.Sscan(p.Query(t, service, "select count(*)::text from "+table)[0], &n)
		return n
	}
	saved := map[string]stage.Receipt{}
	for _, ref := range p.Query(t, "sales", "select external_ref from sales") {
		saved[ref] = receipts[ref]
	}
	if len(saved) < 100 || len(saved) == len(receipts) || count("commissions", "commissions") >= len(saved) || count("goals", "facts") >= len(saved) {
		t.Errorf("of %d sales the backup has %d, with %d commissions and %d facts: nothing was under way when it was made",
			len(receipts), len(saved), count("commissions", "commissions"), count("goals", "facts"))
	}

	comeBack(t, p)
	shop.AwaitKey(t)
	b.Settle(t, saved) // every receipt's sale, commission and fact once, balanced books, and no webhook twice
	if now := shop.Receiver.Counts(); !maps.Equal(now, sent) {
		t.Errorf("%d webhooks had been sent, and now %d", len(sent), len(now))
	}

	restored := len(saved)
	// What was acknowledged later is lost, and told again becomes another sale.
	for ref, was := range receipts {
		if _, known := saved[ref]; known {
			continue
		}
		if again := shop.Sell(t, ref); again.SaleID == was.SaleID || again.CommissionAmount != was.CommissionAmount {
			t.Errorf("%s was %+v and is %+v", ref, was, again)
		} else {
			saved[ref] = again
		}
	}
	maps.Copy(saved, shop.SellMany(t, "new", 5))
	b.Settle(t, saved)
	for ref, r := range saved {
		if got := shop.Must(t, 200, "POST", "/api/v1/sales", shop.Report(ref)); got.Text("sale_id") != r.SaleID {
			t.Errorf("a repeat of %s is answered %s", ref, got)
		}
	}
	webhooks := len(shop.Receiver.Counts()) - len(sent)
	if want := 2 * (len(saved) - restored); webhooks != want {
		t.Errorf("of what was sold after the restore %d webhooks came, want %d", webhooks, want)
	}
}

func TestABackupIsRestoredOnlyIntoEmptyDatabases(t *testing.T) {
	t.Parallel()
	p := stage.NewPlatform(t)
	folder := filepath.Join(t.TempDir(), "backup")
	if done := backup(t, p, "restore", folder); done.Status != 1 || !strings.Contains(done.Stderr, "is no backup") {
		t.Errorf("without a backup restore ends with status %d and says %q", done.Status, done.Stderr)
	}
	if done := backup(t, p, "save", folder, "goals"); done.Status != 1 || !strings.Contains(done.Stderr, "GOALS_DATABASE_URL is not set") {
		t.Errorf("without one of the databases save ends with status %d and says %q", done.Status, done.Stderr)
	}
	if done := backup(t, p, "save", folder); done.Status != 0 {
		t.Fatalf("save ends with status %d and says %s", done.Status, done.Stderr)
	}
	if done := backup(t, p, "save", folder); done.Status != 1 || !strings.Contains(done.Stderr, "is there already") {
		t.Errorf("a second save to the same folder ends with status %d and says %q", done.Status, done.Stderr)
	}
	if done := backup(t, p, "restore", folder); done.Status != 1 || !strings.Contains(done.Stderr, "is not empty") {
		t.Errorf("restore over what is there ends with status %d and says %q", done.Status, done.Stderr)
	}
}
