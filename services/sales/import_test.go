package sales

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
	"partilha.dev/services/sales/internal/rowfile"
)

// imported is what an import said.
type imported struct {
	t       *testing.T
	err     error
	refused int
	table   map[string]string // by type: taken, repeated, refused
	rows    []refusedRow      // nil where there is no file of them
	stderr  string
}

// file writes a file for the test.
func (f *fixture) file(name, content string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// imports imports the file for the fixture's tenant, as a new process would: with
// nothing in memory.
func (f *fixture) imports(path string) *imported {
	f.t.Helper()
	return f.importsFrom(path, nil)
}

func (f *fixture) importsFrom(path string, stdin *os.File) *imported {
	f.t.Helper()
	s, err := New(f.t.Context(), Config{}, f.deps)
	if err != nil {
		f.t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	got := &imported{t: f.t}
	refused := filepath.Join(f.t.TempDir(), "refused")
	got.refused, got.err = s.runImport(f.t.Context(), importOrder{
		tenant: uuid.MustParse(f.tenant), path: path, refused: refused, stdin: stdin, stdout: &stdout, stderr: &stderr,
	})
	got.stderr, got.table = stderr.String(), tableOf(stdout.String())
	got.rows = readRefused(f.t, refused)
	return got
}

// tableOf are the lines of a table by their first word, the others parted by a space.
func tableOf(text string) map[string]string {
	table := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(strings.Replace(line, "no type", "none", 1))
		table[fields[0]] = strings.Join(fields[1:], " ")
	}
	return table
}

func readRefused(t *testing.T, path string) (rows []refusedRow) {
	t.Helper()
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return rows
		}
		var row refusedRow
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		rows = append(rows, row)
	}
}

// says fails the test unless the table has these lines and nothing went wrong.
func (i *imported) says(lines ...string) *imported {
	i.t.Helper()
	if i.err != nil {
		i.t.Fatalf("import: %v", i.err)
	}
	for _, line := range lines {
		name, want, _ := strings.Cut(line, " ")
		if got := i.table[name]; got != want {
			i.t.Errorf("%s: %q, want %q taken, repeated, refused; refused are %q", name, got, want, i.reasons())
		}
	}
	if len(i.rows) != i.refused {
		i.t.Errorf("%d rows are refused, and %d kept", i.refused, len(i.rows))
	}
	return i
}

// reasons are the refused rows as line, code, and the paths and codes of the details.
func (i *imported) reasons() (reasons []string) {
	for _, row := range i.rows {
		reason := fmt.Sprint(row.Line, " ", row.Code)
		for _, d := range row.Details {
			reason += fmt.Sprint(" ", d.Path, " ", d.Code)
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

func TestTheExampleFilesAreTakenOverAndARepeatChangesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"history.csv", "history.ndjson"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, nowhere)
			path := filepath.Join("example", name)
			f.key = f.admin("POST", "/admin/v1/tenants/"+f.newTenant()+"/api-keys", `{"name":"test"}`).want(201).text("api_key")
			first := f.imports(path).says("partner 3 0 0", "campaign 1 0 0", "plan 2 0 0", "link 2 0 0", "sale 3 0 0", "all 11 0 0")
			if first.rows != nil || first.refused != 0 {
				t.Errorf("refused: %+v", first.rows)
			}
			sale := func(ref string) *response {
				id := f.get("/api/v1/sales?external_ref=" + ref).want(200).object()["data"].([]any)[0].(map[string]any)["sale_id"]
				return f.get("/api/v1/sales/" + fmt.Sprint(id)).want(200)
			}
			sale("order-48213").shows("amount_brl", "259.35", "commission_pct", "12.5", "commission_amount_brl", "32.42",
				"sold_at", "2026-01-14T13:02:41Z", "customer_ref", "customer-9917", "notes", "<nil>", "referral_code", "ana.souza")
			sale("order-48214").shows("amount_brl", "100.00", "commission_amount_brl", "30.00", "customer_ref", "<nil>",
				"notes", "a gift, \"for Rita\",\npaid in two instalments")
			last := sale("order-48215").shows("commission_amount_brl", "0.29")
			if last.text("sold_at") != last.text("created_at") {
				t.Errorf("a sale without sold_at was sold at %s", last.text("sold_at"))
			}
			if n := f.rows("outbox o join sales s on convert_from(o.body, 'UTF8')::jsonb #>> '{data,sale_id}' = s.sale_id::text where o.name = 'sale.recorded'"); n != 3 {
				t.Errorf("%d of 3 sales have their event", n)
			}
			if n := f.rows("outbox where name = 'partner.created' and tenant_id = '" + f.tenant + "'"); n != 3 {
				t.Errorf("%d of 3 partners have their event", n)
			}
			f.get("/api/v1/partners?referral_code=caio.reis").want(200)
			repeat := func() {
				f.imports(path).says("partner 0 3 0", "campaign 0 1 0", "plan 0 2 0", "link 0 2 0", "sale 0 3 0", "all 0 11 0")
			}
			f.recordsNothing(repeat)
			f.patch("/api/v1/campaigns/"+sale("order-48213").text("campaign_id"), `{"status":"ended"}`).want(200)
			f.recordsNothing(repeat)
		})
	}
}

// newTenant makes a tenant without a catalogue, and imports for it from now on.
func (f *fixture) newTenant() string {
	f.t.Helper()
	f.tenant = f.admin("POST", "/admin/v1/tenants", `{"name":"Loja"}`).want(201).text("tenant_id")
	return f.tenant
}

func TestTheExamplesOfTheHelpCanBeImported(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	var csv, ndjson strings.Builder
	for line := range strings.Lines(importHelp) {
		text, indented := strings.CutPrefix(line, "  ")
		switch {
		case strings.HasPrefix(text, `{"type":`):
			ndjson.WriteString(text)
		case indented && strings.Count(text, ",") > 5 && !strings.Contains(text, ", "):
			csv.WriteString(text)
		}
	}
	f.newTenant()
	f.imports(f.file("help.csv", csv.String())).says("partner 1 0 0", "campaign 1 0 0", "plan 1 0 0", "link 1 0 0", "sale 1 0 0")
	f.imports(f.file("help.ndjson", ndjson.String())).says("campaign 0 1 0", "sale 0 1 0", "all 0 2 0")
}

func TestWhatAFileSaysOfWhatIsKnownMustAgree(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.newTenant()
	f.imports("example/history.ndjson").says("all 11 0 0")
	content, err := os.ReadFile("example/history.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("259.35", "259.36", `"Gold"`, `"Silver"`, `"pending"`, `"active"`, "customer-9917", "customer-9918").Replace(string(content))
	f.recordsNothing(func() {
		got := f.imports(f.file("changed.ndjson", changed)).says("partner 0 2 1", "campaign 0 1 0", "plan 0 1 1", "link 0 2 0", "sale 0 2 1")
		if want := []string{"3 conflict", "6 conflict", "9 conflict"}; !slices.Equal(got.reasons(), want) {
			t.Errorf("refused %q, want %q", got.reasons(), want)
		}
		for i, members := range []string{"status", "name", "amount_brl, customer_ref"} {
			if want := "this external_ref is known with another " + members + "; what is recorded stays as it is"; got.rows[i].Message != want {
				t.Errorf("%q, want %q", got.rows[i].Message, want)
			}
		}
	})
	const nameless = `{"type":"partner","name":"Davi","referral_code":"davi"}`
	f.imports(f.file("n.ndjson", nameless)).says("partner 1 0 0")
	f.recordsNothing(func() {
		got := f.imports(f.file("n.ndjson", nameless)).says("partner 0 0 1")
		if want := "referral_code is taken; without an external_ref nobody can tell whether by this very row"; got.rows[0].Message != want {
			t.Errorf("%q, want %q", got.rows[0].Message, want)
		}
	})
}

func TestWhatBelongsToAnotherTenantIsNamedByNobodyElse(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere) // whose catalogue is the other tenant's
	other := *f
	f.post("/api/v1/campaigns", `{"name":"theirs","external_ref":"theirs"}`).want(201)
	f.post("/api/v1/campaigns/"+f.campaign+"/plans", `{"name":"p","commission_pct":1,"external_ref":"their-plan"}`).want(201)
	other.newTenant()
	rows := strings.Join([]string{
		`{"type":"campaign","name":"own","external_ref":"own"}`,
		`{"type":"plan","campaign_ref":"own","name":"own","commission_pct":1,"external_ref":"own-plan"}`,
		`{"type":"partner","name":"own","referral_code":"own","external_ref":"own"}`,
		`{"type":"plan","campaign_ref":"theirs","name":"x","commission_pct":1,"external_ref":"x"}`,
		`{"type":"plan","campaign_id":"` + f.campaign + `","name":"x","commission_pct":1,"external_ref":"x"}`,
		`{"type":"link","campaign_ref":"own","referral_code":"ana.souza"}`,
		`{"type":"link","campaign_id":"` + f.campaign + `","referral_code":"own"}`,
		`{"type":"sale","referral_code":"own","campaign_ref":"theirs","plan_ref":"own-plan","amount_brl":1,"external_ref":"1"}`,
		`{"type":"sale","referral_code":"own","campaign_id":"` + f.campaign + `","plan_ref":"own-plan","amount_brl":1,"external_ref":"2"}`,
		`{"type":"sale","referral_code":"own","campaign_ref":"own","plan_ref":"their-plan","amount_brl":1,"external_ref":"3"}`,
		`{"type":"sale","referral_code":"own","campaign_ref":"own","plan_id":"` + f.plan + `","amount_brl":1,"external_ref":"4"}`,
		`{"type":"sale","referral_code":"ana.souza","campaign_ref":"own","plan_ref":"own-plan","amount_brl":1,"external_ref":"5"}`,
	}, "\n")
	got := other.imports(other.file("rows", rows)).says("campaign 1 0 0", "plan 1 0 2", "partner 1 0 0", "link 0 0 2", "sale 0 0 5")
	want := []string{
		"4 not_found /campaign_ref not_allowed", "5 not_found /campaign_id not_allowed", "6 not_found /referral_code not_allowed",
		"7 not_found /campaign_id not_allowed", "8 not_found /campaign_ref not_allowed", "9 not_found /campaign_id not_allowed",
		"10 not_found /plan_ref not_allowed", "11 not_found /plan_id not_allowed", "12 partner_not_found",
	}
	if !slices.Equal(got.reasons(), want) {
		t.Errorf("refused\n%q\nwant\n%q", got.reasons(), want)
	}
}

func TestRowsMayNameWhatExistsByItsID(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	rows := `{"type":"sale","referral_code":"ana.souza","campaign_id":"` + strings.ToUpper(f.campaign) + `","plan_id":"` + f.plan + `","campaign_ref":null,"amount_brl":100.50,"external_ref":"order-1"}
{"type":"plan","campaign_id":"` + f.campaign + `","name":"x","commission_pct":1,"external_ref":"x"}`
	f.imports(f.file("rows", rows)).says("sale 1 0 0", "plan 1 0 0")
	f.post("/api/v1/sales", f.sale("order-1")).want(200).shows("commission_amount_brl", "5.03")
}

func TestFiftyThousandSalesTakeFewCommits(t *testing.T) {
	t.Parallel()
	const sales = 50_000
	f := start(t, nowhere)
	var rows bytes.Buffer
	rows.WriteString("type;referral_code;campaign_id;plan_id;amount_brl;external_ref\n")
	for n := range sales {
		fmt.Fprintf(&rows, "sale;%s;%s;%s;%d.%02d;order-%d\n", f.code, f.campaign, f.plan, n+1, n%100, n)
	}
	f.imports(f.file("sales.csv", rows.String())).says("sale 50000 0 0")
	if n := f.rows("(select distinct xmin::text from sales) commits"); n > sales/commitSize+1 {
		t.Errorf("%d sales took %d commits", sales, n)
	}
	for _, table := range []string{"sales", "outbox where name = 'sale.recorded'", "outbox_pending p join outbox o using (event_id) where o.name = 'sale.recorded'"} {
		if n := f.rows(table); n != sales {
			t.Errorf("%d %s, want %d", n, table, sales)
		}
	}
}

func TestOfSalesWithOneReferenceTheFirstInTheFileIsMade(t *testing.T) {
	t.Parallel()
	const refs = 250 // twice as many fit into one commit
	f := start(t, nowhere)
	var rows strings.Builder
	add := func(amount, n int) {
		fmt.Fprintf(&rows, `{"type":"sale","referral_code":"ana.souza","campaign_id":"%s","plan_id":"%s","amount_brl":%d,"external_ref":"order-%d"}`+"\n", f.campaign, f.plan, amount, n)
	}
	for n := range refs {
		add(1, n*7%refs)
	}
	for n := range refs {
		add(2, n*3%refs)
	}
	add(1, 0)
	got := f.imports(f.file("rows", rows.String())).says("sale 250 1 250")
	for i, reason := range got.reasons() {
		if want := fmt.Sprint(refs+1+i, " conflict"); reason != want {
			t.Fatalf("refused as %q, want %q", reason, want)
		}
	}
	if n := f.rows("sales where amount_centavos = 100"); n != refs {
		t.Errorf("%d sales are recorded as the first row says, want %d", n, refs)
	}
}

func TestARateThatChangesDuringAnImportHoldsForTheSalesAfterIt(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	s, err := New(t.Context(), Config{}, f.deps)
	if err != nil {
		t.Fatal(err)
	}
	row := func(ref string) string {
		return `{"type":"sale","referral_code":"ana.souza","campaign_id":"` + f.campaign + `","plan_id":"` + f.plan + `","amount_brl":100,"external_ref":"` + ref + `"}` + "\n"
	}
	file, err := rowfile.Open(t.Context(), f.file("rows", row("before")+row("after")), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, err := s.newImporter(importOrder{
		tenant: uuid.MustParse(f.tenant), refused: filepath.Join(t.TempDir(), "refused"), stdout: io.Discard, stderr: io.Discard,
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := file.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"before", "after"} {
		next, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		kind, err := m.kindOf(next)
		if err == nil {
			err = m.take(t.Context(), &importRow{Row: next, kind: kind})
		}
		if err == nil {
			err = m.recordWaiting(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", ref, err)
		}
		f.patch("/api/v1/plans/"+f.plan, `{"commission_pct":50}`).want(200) // what the importer remembers is out of date now
	}
	f.post("/api/v1/sales", f.sale("before", "amount_brl", "100")).want(200).shows("commission_amount_brl", "5.00")
	f.post("/api/v1/sales", f.sale("after", "amount_brl", "100")).want(200).shows("commission_amount_brl", "50.00")
}

func TestProgressIsOneLineOnATerminalAndALineNowAndThenElsewhere(t *testing.T) {
	tally := newImportTally()
	tally.count(importKinds[0], true)
	tally.count(importKinds[0], false)
	tally.refuse(nil)
	const text = "pass 2 of 3, 50 %: 1 taken, 1 repeated, 1 refused"
	for name, row := range map[string]struct {
		terminal bool
		pause    time.Duration
		want     string
	}{
		"terminal":             {true, progressOnTerminal, "\r\x1b[K" + text + "\r\x1b[K"},
		"terminal, too early":  {true, progressOnTerminal / 2, "\r\x1b[K"},
		"elsewhere":            {false, progressElsewhere, text + "\n"},
		"elsewhere, too early": {false, progressOnTerminal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := importProgress{out: &out, terminal: row.terminal, size: 200}
			p.show(2, 100, tally) // which starts the clock
			p.last = p.last.Add(-row.pause)
			p.show(2, 100, tally)
			p.clear()
			if out.String() != row.want {
				t.Errorf("shows %q, want %q", out.String(), row.want)
			}
		})
	}
}

func TestWhatAnImportMakesIsPublishedWithoutAServiceThatRuns(t *testing.T) {
	t.Parallel()
	server := testkit.NATS(t)
	f := &fixture{t: t, database: testkit.Database(t, Migrations...), nats: server.URL()}
	f.deps = f.connect()
	cmd, stdout, stderr := f.program("tenant", "create", "Loja")
	f.ends(cmd, 0, stderr)
	f.tenant = strings.TrimSpace(stdout.String())
	n := 0
	testkit.Eventually(t, soon, "what an import makes is told", func() bool { // the stream itself has to be made first
		n++
		f.imports(f.file("row", fmt.Sprintf(`{"type":"partner","name":"P","referral_code":"p%d","external_ref":"p%d"}`, n, n))).says("partner 1 0 0")
		return len(f.stream()) > 0
	})
}
