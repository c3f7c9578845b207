package testkit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// marked is a schema whose migration leaves something random, another one each time it runs.
var marked = schema("create table mark as select gen_random_uuid()::text as id;")

func schema(up string) postgres.Schema {
	return postgres.Schema{
		Name: "marked",
		FS:   fstest.MapFS{"00001_init.sql": {Data: []byte("-- +goose Up\n" + up + "\n")}},
	}
}

func TestTwoDatabasesAreIndependent(t *testing.T) {
	t.Parallel()
	one, other := testkit.Database(t, marked), testkit.Database(t, marked)

	ask(t, one, "insert into mark values ('mine') returning id")

	if got := ask(t, other, "select count(*)::text from mark"); got != "1" {
		t.Errorf("the other database has %s rows, want 1", got)
	}
}

func TestASetOfSchemasIsMigratedOnce(t *testing.T) {
	t.Parallel()
	const mark = "select id from mark"
	one, other := testkit.Database(t, marked), testkit.Database(t, marked)
	if ask(t, one, mark) != ask(t, other, mark) {
		t.Error("the second database was migrated instead of copied")
	}
}

func TestSchemasOfOneNameButOtherMigrationsAreNotMixedUp(t *testing.T) {
	t.Parallel()
	testkit.Database(t, marked)
	url := testkit.Database(t, schema("create table mark as select 'another' as id;"))
	if got := ask(t, url, "select id from mark"); got != "another" {
		t.Errorf("read %q", got)
	}
}

func TestADatabaseWithoutSchemasIsEmpty(t *testing.T) {
	t.Parallel()
	const tables = "select count(*)::text from pg_tables where schemaname = 'public'"
	if got := ask(t, testkit.Database(t), tables); got != "0" {
		t.Errorf("it has %s tables", got)
	}
}

func TestADatabaseEndsWithItsTestEvenIfSomebodyIsConnected(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("the test", func(t *testing.T) {
		url = testkit.Database(t)
		if _, err := pgx.Connect(t.Context(), url); err != nil { // and never closed
			t.Fatal(err)
		}
	})
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		conn.Close(t.Context())
		t.Error("the database is still there")
	} else if !strings.Contains(err.Error(), "does not exist") {
		t.Error(err)
	}
}

func TestAServerOfOnesOwnCanBeKilledAndRestarted(t *testing.T) {
	t.Parallel()
	server := testkit.Postgres(t)
	url := server.URL("postgres")
	ask(t, url, "create table kept as select 1; select ''")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, url, "select count(*)::text from kept"); got != "1" {
		t.Errorf("%s rows survived, want 1", got)
	}
}

func TestNATSKeepsItsMessagesUnlessItIsWiped(t *testing.T) {
	t.Parallel()
	server := testkit.NATS(t)
	url := server.URL()
	stored := func() uint64 {
		t.Helper()
		info, err := stream(t, url).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Msgs
	}
	publish(t, url, 3)

	server.Stop()
	if conn, err := nats.Connect(url, nats.NoReconnect()); err == nil {
		conn.Close()
		t.Error("the server answers after Stop")
	}
	server.Start()
	if got := stored(); got != 3 {
		t.Errorf("after a stop %d messages are there, want 3", got)
	}

	server.Kill()
	server.Start()
	if got := stored(); got != 3 {
		t.Errorf("after a kill %d messages are there, want 3", got)
	}

	server.Stop()
	server.Wipe()
	server.Start()
	if got := stored(); got != 0 {
		t.Errorf("after a wipe %d messages are there, want 0", got)
	}
	if server.URL() != url {
		t.Errorf("the URL changed from %s to %s", url, server.URL())
	}
}

func TestTwoNATSServersAreIndependent(t *testing.T) {
	t.Parallel()
	one, other := testkit.NATS(t), testkit.NATS(t)
	publish(t, one.URL(), 1)
	info, err := stream(t, other.URL()).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Msgs != 0 {
		t.Errorf("the other server has %d messages", info.State.Msgs)
	}
}

func TestEventuallyWaitsForTheCondition(t *testing.T) {
	calls := 0
	testkit.Eventually(t, time.Minute, "three calls", func() bool { calls++; return calls == 3 })
	if calls != 3 {
		t.Errorf("the condition was asked %d times", calls)
	}
}

func TestEventuallyFailsWithTheSentence(t *testing.T) {
	failed := &failure{TB: t}
	testkit.Eventually(failed, time.Millisecond, "the moon is blue", func() bool { return false })
	if !strings.HasPrefix(failed.message, "the moon is blue") {
		t.Errorf("it failed with %q", failed.message)
	}
}

// failure is a test that notes how it failed.
type failure struct {
	testing.TB
	message string
}

func (f *failure) Fatalf(format string, args ...any) { f.message = fmt.Sprintf(format, args...) }

// ask runs statements and returns the only value of the last one.
func ask(t *testing.T, url, statements string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(t.Context(), statements).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return string(results[len(results)-1].Rows[0][0])
}

func publish(t *testing.T, url string, messages int) {
	t.Helper()
	stream(t, url)
	js := jetStream(t, url)
	for range messages {
		if _, err := js.Publish(t.Context(), "kept.message", nil); err != nil {
			t.Fatal(err)
		}
	}
}

func stream(t *testing.T, url string) jetstream.Stream {
	t.Helper()
	stream, err := jetStream(t, url).CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "KEPT", Subjects: []string{"kept.>"}, Storage: jetstream.FileStorage,
	})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func jetStream(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
