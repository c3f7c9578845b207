package e2e

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"partilha.dev/deploy/e2e/stage"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/pgserver"
)

const runbook = "deploy/RUNBOOK.md"

// block is one block of commands in the runbook.
type block struct {
	heading, language, text string
	line                    int
}

// blocksOf are the fenced blocks of a page, in their order.
func blocksOf(page string) (blocks []block) {
	var heading, fence string
	for i, line := range strings.Split(page, "\n") {
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence = "```"
			blocks = append(blocks, block{heading: heading, language: line[3:], line: i + 1})
		case line == fence && fence != "":
			fence = ""
		case fence != "":
			blocks[len(blocks)-1].text += line + "\n"
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimLeft(line, "# ")
		}
	}
	return blocks
}

// desk is a shell as the runbook takes it for granted: the programs by their names, and
// its variables.
type desk struct {
	*stage.Platform
	*stage.Shop
	programs  string
	variables map[string]string
}

func newDesk(t *testing.T, p *stage.Platform, s *stage.Shop) *desk {
	t.Helper()
	everywhere := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(p.BaseFor(r.In.URL.Path))
		if err == nil {
			r.SetURL(to)
		}
	}})
	t.Cleanup(everywhere.Close)
	d := &desk{Platform: p, Shop: s, programs: t.TempDir(), variables: map[string]string{
		"BASE_URL": everywhere.URL, "ADMIN_TOKEN": stage.AdminToken, "API_KEY": s.Token, "SINCE": time.Now().UTC().Format(time.RFC3339),
		"TENANT_ID": s.TenantID, "KEY_ID": s.KeyID, "CUSTOMER_REF": "maria", "BACKUP": filepath.Join(t.TempDir(), "backup"),
	}}
	for _, service := range stage.Services {
		process := p.Processes[service]
		d.variables[strings.ToUpper(service)+"_URL"] = process.Base()
		var script strings.Builder
		script.WriteString("#!/bin/sh\n")
		for _, setting := range process.Env {
			name, value, _ := strings.Cut(setting, "=")
			if name == "ADDR" {
				value = strings.TrimPrefix(process.Base(), "http://")
			}
			if name == "DATABASE_URL" {
				d.variables[strings.ToUpper(service)+"_DATABASE_URL"] = value
			}
			fmt.Fprintf(&script, "export %s='%s'\n", name, value)
		}
		fmt.Fprintf(&script, "exec '%s' \"$@\"\n", stage.Program(t, service))
		if err := os.WriteFile(filepath.Join(d.programs, service), []byte(script.String()), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// park makes an event that is parked at commissions and whose cause is mended, and returns
// its id.
func (d *desk) park(t *testing.T) event.ID {
	t.Helper()
	e := wrongSale(t, d.Shop)
	right := strings.Replace(string(e.Body), `"commission_amount_brl":5.01`, `"commission_amount_brl":5.00`, 1)
	d.Exec(t, "commissions", `insert into parked_events (consumer, event_id, name, tenant_id, body, reason)
		values ('commissions-earn', $1, $2, $3, $4, 'the commission is wrong')`, [16]byte(e.ID), e.Name, uuid.MustParse(d.TenantID), []byte(right))
	return e.ID
}

// run runs a block in a shell that ends at the first command that fails, or at a variable
// that nobody sets.
func (d *desk) run(t *testing.T, b block) (out string, err error) {
	t.Helper()
	if strings.Contains(b.text, "$EVENT_ID") {
		d.variables["EVENT_ID"] = d.park(t).String()
	}
	server, err := pgserver.Find()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", b.text)
	command.Dir = root
	command.Env = []string{"PATH=" + d.programs + ":" + server + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PGCONNECT_TIMEOUT=10"}
	for name, value := range d.variables {
		command.Env = append(command.Env, name+"="+value)
	}
	var complaints strings.Builder
	command.Stderr = &complaints
	stdout, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaints.String())
	}
	return string(stdout), err
}

// TestEveryCommandOfTheRunbookDoesItsWork runs every block of the runbook as it stands, in
// the order of the page, beside four processes that have something to tell.
func TestEveryCommandOfTheRunbookDoesItsWork(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	stage.Books{Platform: p, Shop: shop}.Settle(t, shop.SellMany(t, "order", 2))
	d := newDesk(t, p, shop)
	bought := shop.Report("for-maria")
	bought["customer_ref"] = d.variables["CUSTOMER_REF"]
	shop.Must(t, 201, "POST", "/api/v1/sales", bought)
	ran := 0
	for _, b := range blocksOf(readProject(t, runbook)) {
		if b.language != "sh" {
			continue
		}
		ran++
		out, err := d.run(t, b)
		switch {
		case err != nil:
			t.Errorf("%s:%d (%s): %v\n%s", runbook, b.line, b.heading, err, b.text)
		case strings.TrimSpace(out) == "":
			t.Errorf("%s:%d (%s) shows nothing:\n%s", runbook, b.line, b.heading, b.text)
		case strings.Contains(out, `"code":`): // an answer that refuses
			t.Errorf("%s:%d (%s) is refused: %s", runbook, b.line, b.heading, out)
		}
	}
	if ran < 20 {
		t.Errorf("only %d blocks were run", ran)
	}
	told := regexp.MustCompile("`([A-Z_]+)`")
	table := map[string]bool{}
	for line := range strings.Lines(readProject(t, runbook)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, name := range told.FindAllStringSubmatch(cells[1], -1) {
				table[name[1]] = true
			}
		}
	}
	if set := slices.Sorted(maps.Keys(d.variables)); !slices.Equal(slices.Sorted(maps.Keys(table)), set) {
		t.Errorf("the table of the runbook names %v, and this test sets %v", slices.Sorted(maps.Keys(table)), set)
	}
}

// What cannot be run here must at least be something that cannot.
func TestWhatTheRunbookShowsWithoutATestCannotBeRunByOne(t *testing.T) {
	for _, b := range blocksOf(readProject(t, runbook)) {
		switch b.language {
		case "sh":
		case "console":
			for line := range strings.Lines(b.text) {
				if !strings.HasPrefix(line, "$ ") || !strings.Contains(line, "docker ") && !strings.Contains(line, "deploy/backup/restore ") {
					t.Errorf("%s:%d (%s) needs neither Docker nor databases that may be lost, and is not run: %s", runbook, b.line, b.heading, line)
				}
			}
		default:
			t.Errorf("%s:%d (%s) is of the kind %q: sh is run, console is not", runbook, b.line, b.heading, b.language)
		}
	}
}

// TestTheRunbookLinksToWhatIsThere looks for the heading of each link within the page.
func TestTheRunbookLinksToWhatIsThere(t *testing.T) {
	page := readProject(t, runbook)
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		anchor := strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")
		if anchors[anchor] {
			t.Errorf("two headings are #%s", anchor)
		}
		anchors[anchor] = true
	}
	links := regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(page, -1)
	if len(links) < 10 {
		t.Errorf("only %d links are found", len(links))
	}
	for _, link := range links {
		if !anchors[link[1]] {
			t.Errorf("there is no heading for #%s", link[1])
		}
	}
	for _, file := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(root, "deploy", file[1])); err != nil {
			t.Error(err)
		}
	}
}
