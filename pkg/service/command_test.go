package service

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestTheWordsOfAUsageThatSelectTheCommand(t *testing.T) {
	for usage, want := range map[string]string{
		"serve": "serve", "tenant create NAME": "tenant create", "key create TENANT_ID NAME [--scopes a,b]": "key create",
		"republish --from DATE": "republish", "list [all]": "list", "NAME": "",
	} {
		if got := strings.Join(selector(usage), " "); got != want {
			t.Errorf("%q: %q, want %q", usage, got, want)
		}
	}
}

func TestACommandThatDoesNotExistShowsWhatDoes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"help"}, {"--help"}, {"Serve"}, {"shelf"}, {"shelf", "remove"}, {"serve", "--port=80"}, {"migrate", "now"}, {"parked"}, {""}} {
		status, stdout, stderr := command(t, "shop", nil, args...) // and without any configuration
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "usage: shop COMMAND\n") {
			t.Errorf("%q: status %d, %q %q", args, status, stdout, stderr)
		}
		for _, usage := range []string{"serve ", "migrate ", "shelf add NAME [--high] ", "parked retry EVENT_ID "} {
			if !strings.Contains(stderr, "\n  "+usage) {
				t.Errorf("%q: the usage does not name %q: %s", args, usage, stderr)
			}
		}
	}
}

func TestOnlyAServiceThatConsumesHasCommandsForParkedEvents(t *testing.T) {
	usages := func(p Program) (all []string) {
		for _, c := range p.commands() {
			all = append(all, c.Usage)
		}
		return all
	}
	own := Command{Usage: "key create"}
	if got := usages(Program{Schemas: []postgres.Schema{shopSchema}, Commands: []Command{own}}); !slices.Equal(got, []string{"serve", "migrate", "healthcheck", "version", "key create"}) {
		t.Errorf("a publisher has %q", got)
	}
	want := []string{"serve", "migrate", "healthcheck", "version", "key create", "catch-up", "parked list", "parked show EVENT_ID", "parked retry EVENT_ID", "parked drop EVENT_ID", "outbox status", "reconcile now"}
	if got := usages(Program{Schemas: []postgres.Schema{bus.Schema, shopSchema}, Commands: []Command{own}}); !slices.Equal(got, want) {
		t.Errorf("a consumer has %q", got)
	}
}

func TestACommandEndsWithItsStatusAndOneSentence(t *testing.T) {
	t.Parallel()
	database := "DATABASE_URL=" + testkit.Database(t, bus.Schema, shopSchema)
	sentence := func(what string, status int, stdout, stderr, want string) {
		t.Helper()
		if status != 1 || stdout != "" || !strings.HasPrefix(stderr, "shop: ") || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d, %q %q", what, status, stdout, stderr)
		}
	}
	if status, stdout, stderr := command(t, "shop", []string{database}, "shelf", "add", "top", "--high"); status != 0 || stdout != "added top,--high\n" || stderr != "" {
		t.Errorf("status %d, %q %q", status, stdout, stderr)
	}
	status, stdout, stderr := command(t, "shop", []string{database}, "fail")
	sentence("a command that fails", status, stdout, stderr, "the shelf is broken")
	status, stdout, stderr = command(t, "shop", nil, "migrate")
	sentence("no database", status, stdout, stderr, "DATABASE_URL")
	status, stdout, stderr = command(t, "shop", []string{database, "MIGRATE=yes"}, "serve")
	sentence("a bad switch", status, stdout, stderr, "MIGRATE")
	status, stdout, stderr = command(t, "shop", []string{database, "LOG_LEVEL=loud"}, "serve")
	sentence("a bad level", status, stdout, stderr, `LOG_LEVEL "loud" is none of debug, info, warn, error`)
	status, _, stderr = command(t, "shop", []string{"DATABASE_URL=postgres://x:hunter2@127.0.0.1:1/x"}, "fail")
	if status != 1 || !strings.Contains(stderr, "reach PostgreSQL") || strings.Contains(stderr, "hunter2") {
		t.Errorf("no server: status %d, %q", status, stderr)
	}
}

func TestACommandMayHaveStatusesAndAHelpOfItsOwn(t *testing.T) {
	t.Parallel()
	database := []string{"DATABASE_URL=" + testkit.Database(t, bus.Schema, shopSchema)}
	for what, row := range map[string]struct {
		env            []string
		args           []string
		status         int
		stdout, stderr string
	}{
		"it has said what there is to say": {database, []string{"count", "top"}, 1, "", ""},
		"it fails":                         {database, []string{"count"}, 2, "", "shop: name a shelf\n"},
		"it is not configured":             {nil, []string{"count", "top"}, 2, "", "DATABASE_URL"},
		"it explains itself":               {nil, []string{"count", "top", "--help"}, 0, "count counts.\n", ""},
		"it explains itself in short":      {nil, []string{"count", "-h"}, 0, "count counts.\n", ""},
	} {
		status, stdout, stderr := command(t, "shop", row.env, row.args...)
		if status != row.status || stdout != row.stdout || !strings.Contains(stderr, row.stderr) || (row.stderr == "") != (stderr == "") {
			t.Errorf("%s: status %d, %q %q", what, status, stdout, stderr)
		}
	}
}

func TestAServiceRefusesToStartOnPendingMigrations(t *testing.T) {
	t.Parallel()
	database := "DATABASE_URL=" + testkit.Database(t, bus.Schema)
	status, _, stderr := command(t, "shop", []string{database}, "serve")
	if status != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "migrations are pending (shop)") {
		t.Errorf("status %d, %q", status, stderr)
	}
	if status, stdout, stderr := command(t, "shop", []string{database}, "migrate"); status != 0 || stdout+stderr != "" {
		t.Errorf("migrate: status %d, %q %q", status, stdout, stderr)
	}
	if p := launch(t, "shop", []string{database}, "serve"); p.addr == "" {
		t.Errorf("after migrating: %s", p.errors())
	}
}

func TestAServiceMayMigrateAsItStarts(t *testing.T) {
	t.Parallel()
	p := launch(t, "shop", []string{"DATABASE_URL=" + testkit.Database(t), "MIGRATE=on"}, "serve")
	if p.addr == "" {
		t.Fatalf("it does not start: %s", p.errors())
	}
	response, err := http.Get("http://" + p.addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}
