package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func insert(t *testing.T, tx *postgres.Tx, id int) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), "insert into things values ($1, 'x')", id); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return ask[int](t, pool, "select count(*) from things")
}

func TestATransactionCommitsAndOnlyThenTellsOthers(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	var told []string
	tell := func(who string) func() {
		return func() {
			if count(t, pool) != 1 {
				t.Errorf("%s is told before the commit", who)
			}
			told = append(told, who)
		}
	}
	err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
		tx.AfterCommit(tell("first"))
		tx.AfterFailure(func() { t.Error("it was said to have failed") })
		insert(t, tx, 1)
		tx.AfterCommit(tell("second"))
		return nil
	})
	if err != nil || count(t, pool) != 1 {
		t.Errorf("%v, %d rows", err, count(t, pool))
	}
	if !slices.Equal(told, []string{"first", "second"}) {
		t.Errorf("told %v", told)
	}
}

func TestATransactionThatFailsChangesNothingAndTellsNobody(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	refusal := fault.New(fault.Rule, "rule_violated", "no")
	surprise := errors.New("a surprise")
	for _, want := range []error{refusal, surprise} {
		failed := false
		err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
			tx.AfterCommit(func() { t.Error("somebody was told") })
			tx.AfterFailure(func() { failed = count(t, pool) == 0 })
			insert(t, tx, 1)
			return want
		})
		if err != want || !failed {
			t.Errorf("%v became %v, and the failure was told: %t", want, err, failed)
		}
	}
	if n := count(t, pool); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestATransactionThatPanicsChangesNothing(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	failed := false
	func() {
		defer func() {
			if recover() == nil || !failed {
				t.Error("the panic is swallowed, or the failure not told")
			}
		}()
		_ = postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
			tx.AfterCommit(func() { t.Error("somebody was told") })
			tx.AfterFailure(func() { failed = true })
			insert(t, tx, 1)
			panic("a defect")
		})
	}()
	if n := count(t, pool); n != 0 {
		t.Errorf("%d rows", n)
	}
	if used := pool.Stat().AcquiredConns(); used != 0 {
		t.Errorf("%d connections are still taken", used)
	}
}

func TestAViolationAtTheCommitTellsNobody(t *testing.T) {
	t.Parallel()
	pool := open(t, schema("late", "create table things (id int, name text, constraint things_once unique (id) deferrable initially deferred)"))
	err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
		tx.AfterCommit(func() { t.Error("somebody was told") })
		insert(t, tx, 1)
		insert(t, tx, 1)
		return nil
	})
	if !postgres.Violates(err, "things_once") || fault.Of(err) != nil {
		t.Error(err)
	}
}

func TestAConnectionLostAtTheCommitLeavesTheOutcomeOpen(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	failed := false
	err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
		tx.AfterCommit(func() { t.Error("somebody was told") })
		tx.AfterFailure(func() { failed = true })
		insert(t, tx, 1)
		exec(t, pool, "select pg_terminate_backend($1)", tx.Conn().PgConn().PID())
		return nil
	})
	if fault.KindOf(err) != fault.Unavailable || !failed {
		t.Errorf("%v is not unavailable, or the failure is not told: %t", err, failed)
	}
}

func TestACommitThatHasBegunIsSeenThroughThoughItsCallerLeaves(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	exec(t, pool, "create function linger() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(7); return null; end $$")
	exec(t, pool, "create constraint trigger linger after insert on things deferrable initially deferred for each row execute function linger()")
	barrier, err := pool.Begin(t.Context()) // the commit has to wait for it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := barrier.Exec(t.Context(), "select pg_advisory_xact_lock(7)"); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	told := false
	ended := make(chan error, 1)
	go func() {
		ended <- postgres.Transact(ctx, pool, func(tx *postgres.Tx) error {
			tx.AfterCommit(func() { told = true })
			tx.AfterFailure(func() { t.Error("it was said to have failed") })
			_, err := tx.Exec(ctx, "insert into things values (1, 'x')")
			return err
		})
	}()
	testkit.Eventually(t, 20*time.Second, "the commit waits", func() bool {
		return ask[int](t, pool, "select count(*) from pg_locks where locktype = 'advisory' and objid = 7 and not granted") == 1
	})
	leave()
	if err := barrier.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || !told || count(t, pool) != 1 {
		t.Errorf("%v, told %t, %d rows", err, told, count(t, pool))
	}
}

func TestATransactionWhoseCallerHasLeftIsNotCommitted(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	ctx, leave := context.WithCancel(t.Context())
	failed := false
	err := postgres.Transact(ctx, pool, func(tx *postgres.Tx) error {
		tx.AfterFailure(func() { failed = true })
		insert(t, tx, 1)
		leave()
		return nil
	})
	if !errors.Is(err, context.Canceled) || !failed || count(t, pool) != 0 {
		t.Errorf("%v, the failure was told: %t, %d rows", err, failed, count(t, pool))
	}
}

func TestATransactionReadsWhatOthersCommitMeanwhile(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
		var before, after int
		if err := tx.QueryRow(t.Context(), "select count(*) from things").Scan(&before); err != nil {
			return err
		}
		exec(t, pool, "insert into things values (1, 'x')")
		if err := tx.QueryRow(t.Context(), "select count(*) from things").Scan(&after); err != nil {
			return err
		}
		if before != 0 || after != 1 {
			t.Errorf("%d rows, then %d", before, after)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
