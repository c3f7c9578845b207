package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// unavailable checks that err is explained as a dependency that is down, and shows
// nothing of what happened.
func unavailable(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	explained := postgres.Explain(err)
	f := fault.Of(explained)
	if f == nil || f.Kind != fault.Unavailable || f.Code != "unavailable" {
		t.Errorf("%s: %v is not unavailable", what, explained)
		return
	}
	if !errors.Is(explained, err) {
		t.Errorf("%s: the cause is lost", what)
	}
	if strings.Contains(f.Message, err.Error()) {
		t.Errorf("%s: the message shows the cause: %s", what, f.Message)
	}
}

func unchanged(t *testing.T, what string, err error) {
	t.Helper()
	if got := postgres.Explain(err); got != err {
		t.Errorf("%s: %v became %v", what, err, got)
	}
}

func TestWhatTheServerSaysIsNotNowOrNever(t *testing.T) {
	t.Parallel()
	for code, what := range map[string]string{
		"08006": "connection failure", "53100": "disk full", "53200": "out of memory", "53300": "too many connections",
		"57014": "query canceled", "57P01": "server shutting down", "57P02": "server crashed", "57P03": "server starting",
		"58030": "input or output failed", "40001": "serialization", "40P01": "deadlock", "55P03": "lock not available",
		"25006": "no writes", "25P03": "idle in its transaction", "25P04": "a transaction too long",
	} {
		unavailable(t, what, &pgconn.PgError{Code: code, Message: what})
		unavailable(t, what+", wrapped", fmt.Errorf("record: %w", &pgconn.PgError{Code: code, Message: what}))
	}
	for code, what := range map[string]string{
		"23505": "unique violation", "23503": "foreign key", "23514": "check", "22001": "too long", "22021": "not text", "42P01": "no such table",
		"42601": "syntax", "25P02": "transaction aborted", "40002": "integrity", "55006": "in use", "P0001": "raised", "": "no code", "5": "half a code",
	} {
		unchanged(t, what, &pgconn.PgError{Code: code, Message: what})
	}
	unchanged(t, "nothing", nil)
	unchanged(t, "another error", errors.New("a surprise"))
	unchanged(t, "no rows", pgx.ErrNoRows)
	unchanged(t, "a fault", fault.New(fault.Rule, "rule_violated", "no"))
	unchanged(t, "a fault because of the server", fault.New(fault.Rule, "rule_violated", "no").Because(&pgconn.PgError{Code: "57P01"}))
}

func TestALostServerIsUnavailable(t *testing.T) {
	t.Parallel()
	server := testkit.Postgres(t)
	pool := openURL(t, server.URL("postgres"), 2)
	query := func() error { _, err := pool.Exec(t.Context(), "select 1"); return err }

	_, err := pool.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
	unavailable(t, "a connection that the server ends", err)

	ended := make(chan error, 1)
	go func() { _, err := pool.Exec(t.Context(), "select pg_sleep(60)"); ended <- err }()
	testkit.Eventually(t, patience, "a query that runs", func() bool {
		return ask[int](t, pool, "select count(*) from pg_stat_activity where query = 'select pg_sleep(60)'") == 1
	})
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	unavailable(t, "a server that is killed during a query", <-ended)
	unavailable(t, "a server that is gone", query())
	unavailable(t, "a server that is gone", query())
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := query(); err != nil {
		t.Errorf("the pool does not recover: %v", err)
	}

	_, err = postgres.Open(t.Context(), "postgres://nobody@127.0.0.1:1/none", 1)
	unavailable(t, "a refused connection", err)
}

func TestADeadlineIsUnavailable(t *testing.T) {
	t.Parallel()
	pool := openURL(t, testkit.Database(t), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := pool.Exec(ctx, "select pg_sleep(60)")
	unavailable(t, "a query that takes too long", err)

	held, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, cancelShort := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelShort()
	_, err = pool.Exec(short, "select 1")
	unavailable(t, "no free connection", err)
	held.Release()

	_, err = pool.Exec(t.Context(), "set statement_timeout = 10; select pg_sleep(60)")
	unavailable(t, "a statement timeout", err)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = pool.Exec(gone, "select 1")
	unavailable(t, "a caller who has left", err)
	pool.Close()
	_, err = pool.Exec(t.Context(), "select 1")
	unavailable(t, "a pool that is closed", err)
}

func TestOneOfTwoThatBlockEachOtherMayTryAgain(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	exec(t, pool, "insert into things values (1, 'a'), (2, 'b')")
	lock := func(tx pgx.Tx, id int) error {
		_, err := tx.Exec(t.Context(), "update things set name = name where id = $1", id)
		return err
	}
	var first, second pgx.Tx
	for _, tx := range []*pgx.Tx{&first, &second} {
		begun, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer begun.Rollback(context.Background())
		*tx = begun
	}
	if err := errors.Join(lock(first, 1), lock(second, 2)); err != nil {
		t.Fatal(err)
	}
	blocked := make(chan error, 1)
	go func() {
		err := lock(first, 2)
		first.Rollback(context.Background())
		blocked <- err
	}()
	one := lock(second, 1)
	second.Rollback(context.Background())
	other := <-blocked
	if (one == nil) == (other == nil) {
		t.Fatalf("%v and %v", one, other)
	}
	unavailable(t, "a deadlock", errors.Join(one, other))
}

func TestAViolationIsNamedAndNotExplainedAway(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	exec(t, pool, "insert into things values (1, 'a')")
	insert := func(id int, name string) error {
		_, err := pool.Exec(t.Context(), "insert into things values ($1, $2)", id, name)
		unchanged(t, "a violation", err)
		return fmt.Errorf("make thing: %w", err)
	}
	if err := insert(1, "b"); !postgres.Violates(err, "things_pkey") || postgres.Violates(err, "things_named") || postgres.Violates(err, "") {
		t.Error(err)
	}
	if err := insert(2, ""); !postgres.Violates(err, "things_named") || postgres.Violates(err, "things_pkey") || postgres.NoPartition(err) {
		t.Error(err)
	}
	if _, err := pool.Exec(t.Context(), "insert into nothing values (1)"); err == nil || postgres.Violates(err, "") {
		t.Error(err)
	}
	for _, err := range []error{nil, errors.New("things_pkey"), pgx.ErrNoRows} {
		if postgres.Violates(err, "things_pkey") || postgres.NoPartition(err) {
			t.Error(err)
		}
	}
}

func TestAbsentMeansThatNoRowWasFound(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	var id int
	if err := pool.QueryRow(t.Context(), "select id from things").Scan(&id); !postgres.Absent(fmt.Errorf("read thing: %w", err)) {
		t.Error(err)
	}
	if err := pool.QueryRow(t.Context(), "select id from nothing").Scan(&id); postgres.Absent(err) {
		t.Error(err)
	}
	if postgres.Absent(nil) {
		t.Error("nil")
	}
}

func TestAConnectionToAServerThatTakesNoWritesIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, things)
	pool := openURL(t, url, 1)
	exec(t, pool, "set session characteristics as transaction read only")
	_, err := pool.Exec(t.Context(), "insert into things values (1, 'a')")
	unavailable(t, "a server that takes no writes", err)
	exec(t, pool, "insert into things values (1, 'a')")

	exec(t, pool, "set session characteristics as transaction read only")
	add := func(tx *postgres.Tx) error {
		_, err := tx.Exec(t.Context(), "insert into things values (2, 'b')")
		return err
	}
	unavailable(t, "a transaction there", postgres.Transact(t.Context(), pool, add))
	if err := postgres.Transact(t.Context(), pool, add); err != nil {
		t.Error(err)
	}
}

func TestAServerIsReachedThoughAllConnectionsAreTaken(t *testing.T) {
	t.Parallel()
	server := testkit.Postgres(t)
	pool := openURL(t, server.URL("postgres"), 1)
	if err := postgres.Reach(t.Context(), pool); err != nil {
		t.Errorf("with a free connection: %v", err)
	}
	held, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if err := postgres.Reach(t.Context(), pool); err != nil {
		t.Errorf("with none: %v", err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if postgres.Reach(t.Context(), pool) == nil {
		t.Error("a server that is gone is reached")
	}
}
