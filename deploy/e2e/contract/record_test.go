package contract

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/testkit"
)

// volatile is what changes while nothing is recorded.
var volatile = []string{"outbox_pending", "outbox_stream", "outbox_drained", "outbox_uncounted", "listened", "changes"}

// content is all that is recorded, by service and table, except when a key was last used.
func (p *platform) content() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	for _, s := range p.services {
		for _, table := range s.tables(p.t) {
			if !slices.Contains(volatile, table) {
				all[s.name+"."+table] = s.query(p.t, `
					select coalesce(string_agg(line, E'\n' order by line), '')
					from (select (to_jsonb(r) - 'last_used_at')::text as line from `+table+` r) rows`)[0]
			}
		}
	}
	return all
}

// tables are the tables of the service, each as a word of SQL.
func (s *running) tables(t *testing.T) []string {
	t.Helper()
	return s.query(t, `
		select quote_ident(relname) from pg_class
		where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`)
}

// query returns the rows of a query with one text column.
func (s *running) query(t *testing.T, query string) []string {
	t.Helper()
	rows, err := s.deps.Pool.Query(t.Context(), query)
	if err != nil {
		t.Fatalf("ask the database of %s: %v", s.name, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("ask the database of %s: %v", s.name, err)
	}
	return found
}

// recordsNothing fails the test if work changes anything that is recorded.
func (p *platform) recordsNothing(what string, work func()) {
	p.t.Helper()
	before := p.content()
	work()
	for table, rows := range p.content() {
		if rows == before[table] {
			continue
		}
		was, is := strings.Split(before[table], "\n"), strings.Split(rows, "\n")
		gone := slices.DeleteFunc(slices.Clone(was), func(row string) bool { return slices.Contains(is, row) })
		come := slices.DeleteFunc(is, func(row string) bool { return slices.Contains(was, row) })
		p.t.Errorf("%s: %s has lost %.1000q and gained %.1000q", what, table, gone, come)
	}
}

// settle waits until everything has followed from what was recorded.
func (p *platform) settle() {
	p.t.Helper()
	var last map[string]string
	testkit.Eventually(p.t, patience, "nothing is under way any more", func() bool {
		if !p.idle() {
			last = nil
			return false
		}
		now := p.content()
		settled := maps.Equal(last, now)
		last = now
		return settled
	})
}

// idle tells whether every event is published and handled, every webhook sent, every
// replay ended, and every key known to every service.
func (p *platform) idle() bool {
	p.t.Helper()
	ctx := p.t.Context()
	streams := p.bus.JetStream().ListStreams(ctx)
	for stream := range streams.Info() {
		handle, err := p.bus.JetStream().Stream(ctx, stream.Config.Name)
		if err != nil {
			return false
		}
		for info := range handle.ListConsumers(ctx).Info() {
			if info.Config.AckPolicy == jetstream.AckExplicitPolicy && info.NumPending+uint64(info.NumAckPending) > 0 {
				return false
			}
		}
	}
	keys := map[string]bool{}
	for _, s := range p.services {
		for _, table := range s.tables(p.t) {
			switch rows := `select count(*)::text from ` + table; {
			case table == "api_keys" || table == "known_keys":
				keys[s.query(p.t, rows)[0]] = true
			case (table == "outbox_pending" || table == "pending") && s.query(p.t, rows)[0] != "0":
				return false
			case table == "replays" && s.query(p.t, rows+` where state = 'running'`)[0] != "0":
				return false
			}
		}
	}
	return streams.Err() == nil && len(keys) == 1
}
