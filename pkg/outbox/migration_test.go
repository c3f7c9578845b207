package outbox_test

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestAnUpdateKeepsTheConditionInWhichTheStreamWasSeen(t *testing.T) {
	t.Parallel()
	const file = "00001_outbox.sql"
	content, err := fs.ReadFile(outbox.Schema.FS, file)
	if err != nil {
		t.Fatal(err)
	}
	first := outbox.Schema
	first.FS = fstest.MapFS{file: {Data: content}}
	url := testkit.Database(t, first)
	pool, err := postgres.Open(t.Context(), url, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	const seen = `insert into outbox_stream (stream, server_id, created, last_seq) values ('SALES', 'a server', now(), 41)`
	if _, err := pool.Exec(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), url, outbox.Schema); err != nil {
		t.Fatal(err)
	}
	var servers []string
	var firstSeq, lastSeq int
	if err := pool.QueryRow(t.Context(), `select servers, first_seq, last_seq from outbox_stream`).Scan(&servers, &firstSeq, &lastSeq); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(servers, []string{"a server"}) || firstSeq != 1 || lastSeq != 41 {
		t.Errorf("it is remembered as %q, %d to %d", servers, firstSeq, lastSeq)
	}
}
