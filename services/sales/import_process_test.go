package sales

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/testkit"
	"partilha.dev/services/sales/internal/rowfile"
)

// program is the service's program with these arguments, on the fixture's database.
func (f *fixture) program(args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd = exec.CommandContext(f.t.Context(), os.Args[0], args...)
	cmd.Env = []string{runAs + "=1", "DATABASE_URL=" + f.database, "NATS_URL=" + nowhere, "TMPDIR=" + f.t.TempDir()}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// ends fails the test unless the program ends with the status.
func (f *fixture) ends(cmd *exec.Cmd, status int, stderr *bytes.Buffer) {
	f.t.Helper()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		f.t.Fatalf("%q ends with status %d, want %d: %s", cmd.Args[1:], got, status, stderr)
	}
}

func TestAnImportEndsWithTheStatusOfWhatBecameOfTheRows(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.newTenant()
	good := f.file("good.csv", "type,name,external_ref\ncampaign,Summer,summer\n")
	bad := f.file("bad.csv", "type,name,external_ref\ncampaign,Summer,summer\ncampaign,Winter,\n")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, row := range []struct {
		name     string
		args     []string
		status   int
		campaign string
		refused  string // the file of them; "" for none
	}{
		{"all is taken", []string{"--tenant", f.tenant, good}, 0, "1 0 0", ""},
		{"a row is refused", []string{"--tenant=" + f.tenant, bad}, 1, "0 1 1", bad + ".refused.ndjson"},
		{"a row is refused elsewhere", []string{bad, "--refused", elsewhere, "--tenant", f.tenant}, 1, "0 1 1", elsewhere},
	} {
		t.Run(row.name, func(t *testing.T) {
			cmd, stdout, stderr := f.in(t).program(append([]string{"import"}, row.args...)...)
			f.in(t).ends(cmd, row.status, stderr)
			if table := tableOf(stdout.String()); table["TYPE"] != "TAKEN REPEATED REFUSED" || table["campaign"] != row.campaign || table["all"] != row.campaign {
				t.Errorf("prints %s", stdout)
			}
			if row.refused == "" {
				if stderr.Len() > 0 {
					t.Errorf("says %s", stderr)
				}
				return
			}
			if rows := readRefused(t, row.refused); len(rows) != 1 || rows[0].Line != 3 || rows[0].Type != "campaign" || rows[0].Row != "campaign,Winter," {
				t.Errorf("refused are %+v", rows)
			}
			if info, err := os.Stat(row.refused); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file of refused rows: %v %v", info, err)
			}
			if !strings.Contains(stderr.String(), row.refused) {
				t.Errorf("says %s, and not %s", stderr, row.refused)
			}
		})
	}
	suspended := f.admin("POST", "/admin/v1/tenants", `{"name":"x"}`).want(201).text("tenant_id")
	f.admin("PATCH", "/admin/v1/tenants/"+suspended, `{"status":"suspended"}`).want(200)
	f.recordsNothing(func() {
		for sentence, args := range map[string][]string{
			"name a file":                  {"--tenant", f.tenant},
			"--tenant: \"\" is not the id": {good},
			"is not the id of a tenant":    {"--tenant", "Loja", good},
			"one file at a time":           {"--tenant", f.tenant, good, bad},
			"-tennant":                     {"--tennant", f.tenant, good},
			"no such file":                 {"--tenant", f.tenant, good + ".gone"},
			"is a folder":                  {"--tenant", f.tenant, filepath.Dir(good)},
			"there is no tenant":           {"--tenant", "01890000-0000-7000-8000-000000000000", good},
			"the tenant is suspended":      {"--tenant", suspended, good},
			"that is to be imported":       {"--tenant", f.tenant, good, "--refused", good},
			"open file of refused rows":    {"--tenant", f.tenant, good, "--refused", filepath.Join(good, "x")},
			"the header":                   {"--tenant", f.tenant, f.file("empty.csv", "")},
		} {
			cmd, stdout, stderr := f.program(append([]string{"import"}, args...)...)
			f.ends(cmd, 2, stderr)
			if stdout.Len() > 0 || !strings.Contains(stderr.String(), sentence) || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("import %q prints %q and says %q, want %q", args, stdout, stderr, sentence)
			}
		}
	})
	cmd, stdout, stderr := f.program("import", "--help")
	cmd.Env = []string{runAs + "=1"}
	f.ends(cmd, 0, stderr)
	if stdout.String() != importHelp {
		t.Errorf("--help prints %s", stdout)
	}
}

func TestAPipeIsReadAsOftenAsAFile(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.newTenant()
	history, err := os.ReadFile("example/history.csv") // which begins with sales
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr := f.program("import", "--tenant", f.tenant, "-")
	cmd.Dir = t.TempDir()
	cmd.Stdin = bytes.NewReader(history)
	f.ends(cmd, 0, stderr)
	if table := tableOf(stdout.String()); table["sale"] != "3 0 0" || table["all"] != "11 0 0" {
		t.Errorf("prints %s", stdout)
	}
	if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v %v", left, err)
	}
}

// The import is held up inside a commit by a transaction of the test, so that the kill
// always finds it in the middle.
func TestAnImportThatIsKilledLosesNothingAndARepeatDoublesNothing(t *testing.T) {
	t.Parallel()
	const sales, middle = 3000, 1700
	f := start(t, nowhere)
	theirs := f.tenant
	f.newTenant()
	var file strings.Builder
	for n := range sales {
		fmt.Fprintf(&file, `{"type":"sale","referral_code":"ana.souza","campaign_ref":"summer","plan_ref":"gold","amount_brl":%d,"external_ref":"order-%d"}`+"\n", n+1, n)
	}
	for n := range 20 {
		fmt.Fprintf(&file, `{"type":"partner","name":"P","referral_code":"p%d","external_ref":"p%d"}`+"\n", n, n)
		fmt.Fprintf(&file, `{"type":"link","campaign_ref":"summer","referral_code":"p%d"}`+"\n", n)
	}
	file.WriteString(`{"type":"link","campaign_ref":"summer","referral_code":"ana.souza"}
{"type":"plan","campaign_ref":"summer","name":"Gold","commission_pct":30,"external_ref":"gold"}
{"type":"campaign","name":"Summer","external_ref":"summer"}
{"type":"partner","name":"Ana","referral_code":"ana.souza","external_ref":"ana"}
`)
	path := f.file("history.ndjson", file.String())
	own := " where tenant_id = '" + f.tenant + "'"

	for _, kill := range []struct{ table, hold string }{
		{"partners", `insert into partners (tenant_id, partner_id, referral_code, name, status, external_ref, created_at)
			values ($1, gen_random_uuid(), 'p10', 'x', 'active', 'p10', now())`},
		{"sales", fmt.Sprintf(`insert into sales select $1, gen_random_uuid(), 'order-%d', 'x', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1,
			gen_random_uuid(), 1, 0, 0, 0, now(), null, null, now()`, middle)},
	} {
		hold, err := f.deps.Pool.Begin(t.Context())
		if err == nil {
			_, err = hold.Exec(t.Context(), kill.hold, f.tenant)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd, _, stderr := f.program("import", "--tenant", f.tenant, path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, soon, "the import waits for the test", func() bool {
			return f.rows("pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into "+kill.table+" %'") == 1
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("killed, it ends with %v: %s", err, stderr)
		}
		if n := f.rows(kill.table + own); n < 10 || n == 21 || n >= sales {
			t.Errorf("%d %s when it was killed: not in the middle", n, kill.table)
		}
		if err := hold.Rollback(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}

	cmd, stdout, stderr := f.program("import", "--tenant", f.tenant, path)
	f.ends(cmd, 0, stderr)
	if table := tableOf(stdout.String()); !strings.HasPrefix(table["partner"], "0 ") || !strings.HasSuffix(table["all"], " 0") {
		t.Errorf("the repeat prints %s", stdout)
	}
	for what, want := range map[string]int{
		"partners" + own: 21, "links" + own: 21, "plans" + own: 1, "campaigns" + own: 1, "sales" + own: sales,
		"(select distinct external_ref, amount_centavos from sales" + own + " and external_ref = 'order-' || (amount_centavos / 100 - 1)) s": sales,
		"outbox" + own + " and name = 'sale.recorded'":                                                        sales,
		"outbox o join sales s on convert_from(o.body, 'UTF8')::jsonb #>> '{data,sale_id}' = s.sale_id::text": sales,
		"outbox" + own + " and name = 'partner.created'":                                                      21,
		"sales where tenant_id = '" + theirs + "'":                                                            0,
	} {
		if n := f.rows(what); n != want {
			t.Errorf("%d %s, want %d", n, what, want)
		}
	}
	f.recordsNothing(func() {
		again := f.imports(path).says("partner 0 21 0", "campaign 0 1 0", "plan 0 1 0", "link 0 21 0", "sale 0 3000 0")
		if again.refused != 0 {
			t.Errorf("refused %q", again.reasons())
		}
	})
}

func TestAnImportThatIsInterruptedSaysWhatItDidAndGoesOnLater(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.newTenant()
	path := f.file("rows", `{"type":"campaign","name":"a","external_ref":"a"}
{"type":"campaign","name":"b","external_ref":"b"}
`)
	hold, err := f.deps.Pool.Begin(t.Context())
	if err == nil {
		_, err = hold.Exec(t.Context(), `insert into campaigns (tenant_id, campaign_id, name, status, external_ref, created_at) values ($1, gen_random_uuid(), 'b', 'active', 'b', now())`, f.tenant)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr := f.program("import", "--tenant", f.tenant, path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, "the import waits for the test", func() bool {
		return f.rows("pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") == 1
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := hold.Rollback(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if status := cmd.ProcessState.ExitCode(); status != 2 || tableOf(stdout.String())["campaign"] != "1 0 0" || stderr.String() != "sales: interrupted; the same command goes on from here\n" {
		t.Errorf("interrupted, it ends with status %d, prints %s and says %s", status, stdout, stderr)
	}
	f.imports(path).says("campaign 1 1 0")
}

func TestAnImportWithoutItsDatabaseEndsAndGoesOnLater(t *testing.T) {
	t.Parallel()
	const sales = 600
	f, server := startOnOwnServer(t)
	var file strings.Builder
	for n := range sales {
		fmt.Fprintf(&file, `{"type":"sale","referral_code":"ana.souza","campaign_id":"%s","plan_id":"%s","amount_brl":1,"external_ref":"order-%d"}`+"\n", f.campaign, f.plan, n)
	}
	path := f.file("sales.ndjson", file.String())
	hold, err := f.deps.Pool.Begin(t.Context())
	if err == nil {
		_, err = hold.Exec(t.Context(), `lock table sales in share mode`)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr := f.program("import", "--tenant", f.tenant, path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, "the import waits for the test", func() bool {
		return f.rows("pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") == 1
	})
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 2 || tableOf(stdout.String())["sale"] != "0 0 0" || !strings.HasPrefix(stderr.String(), "sales: line 1: ") {
		t.Errorf("without its database it ends with status %d, prints %s and says %s", status, stdout, stderr)
	}
	_ = hold.Rollback(context.WithoutCancel(t.Context()))
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.deps.Pool.Reset()
	cmd, stdout, stderr = f.program("import", "--tenant", f.tenant, path)
	f.ends(cmd, 0, stderr)
	if n := f.rows("sales"); n != sales || f.rows("outbox where name = 'sale.recorded'") != sales {
		t.Errorf("%d sales are recorded, want %d: %s", n, sales, stdout)
	}
}

func TestAnImportEndsWhereItsTenantIsSuspendedMeanwhile(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	var sales strings.Builder
	for n := range commitSize + 1 {
		fmt.Fprintf(&sales, `{"type":"sale","referral_code":"ana.souza","campaign_id":"%s","plan_id":"%s","amount_brl":1,"external_ref":"order-%d"}`+"\n", f.campaign, f.plan, n)
	}
	for _, row := range []struct{ name, hold, file, says, left string }{
		{"between two campaigns", `lock table campaigns in share mode`, `{"type":"campaign","name":"a","external_ref":"a"}
{"type":"campaign","name":"b","external_ref":"b"}
`, "sales: line 2: the tenant is suspended\n", "campaigns where external_ref = 'b'"},
		{"with sales that are decided already", `lock table sales in share mode`, sales.String(), "sales: line 1: the tenant is suspended\n", "sales"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := f.in(t)
			hold, err := f.deps.Pool.Begin(t.Context())
			if err == nil {
				_, err = hold.Exec(t.Context(), row.hold)
			}
			if err != nil {
				t.Fatal(err)
			}
			cmd, stdout, stderr := f.program("import", "--tenant", f.tenant, f.file("rows", row.file))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, soon, "the import waits for the test", func() bool {
				return f.rows("pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") == 1
			})
			f.admin("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"suspended"}`).want(200)
			if err := hold.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != 2 || stderr.String() != row.says {
				t.Errorf("it ends with status %d, prints %s and says %s", status, stdout, stderr)
			}
			if n := f.rows(row.left); n != 0 {
				t.Errorf("%d %s are there", n, row.left)
			}
			f.admin("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"active"}`).want(200)
		})
	}
}

func TestTheFileOfRefusedRowsIsTheOwnersAloneAlsoWhereItWasThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "refused")
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		err = os.Chmod(path, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused, err := keepRefused(path)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of refused rows: %v %v", info, err)
	}
}

// The half of a group that the database refuses may come before a half that it records.
func TestASaleThatFailsHidesNoneThatWasRecordedAfterIt(t *testing.T) {
	t.Parallel()
	sale := importKinds[slices.IndexFunc(importKinds, func(k *importKind) bool { return k.name == "sale" })]
	m := &importer{tally: newImportTally()}
	var decided []waitingSale
	var batch []*entry
	for i, o := range []outcome{{recorded: true}, {err: errors.New("refused")}, {recorded: true}, {err: errors.New("refused as well")}} {
		e := &entry{done: make(chan outcome, 1)}
		e.done <- o
		decided = append(decided, waitingSale{row: &importRow{Row: rowfile.Row{Line: i + 1}, kind: sale}})
		batch = append(batch, e)
	}
	_, err := m.settleSales(decided, batch)
	if err == nil || err.Error() != "line 2: refused" {
		t.Errorf("fails with %v", err)
	}
	if n := m.tally[sale].taken; n != 2 {
		t.Errorf("%d sales are counted, and 2 are recorded", n)
	}
}
