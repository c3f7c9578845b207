package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

const insertThing = "insert into things values ($1, 'x')"

func TestWhatIsToComeLaterIsThereForWhateverComesNext(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	later := func(tx *postgres.Tx, id int) { tx.Later(postgres.Doing("insert"), insertThing, id) }
	const ids = "select id from things order by id"
	read := map[string]func(tx *postgres.Tx) ([]int, error){
		"exec": func(tx *postgres.Tx) ([]int, error) {
			tag, err := tx.Exec(t.Context(), "update things set name = 'y'")
			return slices.Repeat([]int{1}, int(tag.RowsAffected())), err
		},
		"query": func(tx *postgres.Tx) ([]int, error) {
			rows, err := tx.Query(t.Context(), ids)
			if err != nil {
				return nil, err
			}
			return pgx.CollectRows(rows, pgx.RowTo[int])
		},
		"a query whose rows are not all read": func(tx *postgres.Tx) (one []int, err error) {
			rows, err := tx.Query(t.Context(), ids)
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			var id int
			if rows.Next() {
				err = rows.Scan(&id)
			}
			return []int{id}, err
		},
		"row": func(tx *postgres.Tx) ([]int, error) {
			var id int
			err := tx.QueryRow(t.Context(), ids+" limit 1").Scan(&id)
			return []int{id}, err
		},
	}
	for how, next := range read {
		t.Run(how, func(t *testing.T) {
			exec(t, pool, "truncate things")
			err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
				for _, id := range []int{1, 2} { // with the first statement, and with one that has others before it
					later(tx, id)
					if got, err := next(tx); err != nil || len(got) == 0 || got[0] != 1 {
						return fmt.Errorf("%v: %w", got, err)
					}
				}
				later(tx, 3)
				later(tx, 4)
				return nil
			})
			if err != nil || count(t, pool) != 4 {
				t.Errorf("%v, %d rows", err, count(t, pool))
			}
		})
	}
}

func TestARowThatIsNotThereIsAbsentWhateverCameBefore(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
		var id int
		for range 2 {
			tx.Later(postgres.Doing("delete"), "delete from things")
			if err := tx.QueryRow(t.Context(), "select id from things").Scan(&id); !postgres.Absent(err) {
				t.Errorf("%v", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAStatementThatFailsLaterUndoesTheTransactionAndIsExplained(t *testing.T) {
	t.Parallel()
	pool := open(t, schema("once", "create table things (id int primary key, name text)"))
	taken := fault.New(fault.Conflict, "conflict", "it is there")
	explain := func(err error) error {
		if postgres.Violates(err, "things_pkey") {
			return taken
		}
		return err
	}
	for when, next := range map[string]func(tx *postgres.Tx) error{
		"at the commit": func(*postgres.Tx) error { return nil },
		"before a statement": func(tx *postgres.Tx) error {
			_, err := tx.Exec(t.Context(), insertThing, 3)
			return err
		},
		"before a query": func(tx *postgres.Tx) error {
			_, err := tx.Query(t.Context(), "select id from things")
			return err
		},
		"before a row": func(tx *postgres.Tx) error {
			var id int
			return tx.QueryRow(t.Context(), "select 1").Scan(&id)
		},
	} {
		for _, begun := range []bool{false, true} {
			failed := false
			err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
				tx.AfterCommit(func() { t.Error("somebody was told of a commit") })
				tx.AfterFailure(func() { failed = true })
				if begun {
					insert(t, tx, 1)
				} else {
					tx.Later(explain, insertThing, 1)
				}
				tx.Later(explain, insertThing, 1)
				tx.Later(explain, insertThing, 2)
				return next(tx)
			})
			if err != taken || !failed || count(t, pool) != 0 {
				t.Errorf("%s, begun %t: %v, the failure was told: %t, %d rows", when, begun, err, failed, count(t, pool))
			}
			if used := pool.Stat().AcquiredConns(); used != 0 {
				t.Errorf("%s: %d connections are still taken", when, used)
			}
		}
	}
}

func TestATransactionThatSaysNothingIsNoneAndSucceeds(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	told := false
	err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
		tx.AfterCommit(func() { told = true })
		return nil
	})
	if err != nil || !told {
		t.Errorf("%v, told: %t", err, told)
	}
}

func TestAConnectionLostBeforeTheFirstStatementIsUnavailable(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	failed := false
	err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
		tx.AfterFailure(func() { failed = true })
		exec(t, pool, "select pg_terminate_backend($1)", tx.Conn().PgConn().PID())
		tx.Later(postgres.Doing("insert"), insertThing, 1)
		return nil
	})
	if fault.KindOf(err) != fault.Unavailable || !failed || count(t, pool) != 0 {
		t.Errorf("%v, the failure was told: %t, %d rows", err, failed, count(t, pool))
	}
}

func TestACallerWhoLeavesEndsAStatementThatHasOthersBeforeIt(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	exec(t, pool, "insert into things values (1, 'x')")
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.Background())
	if _, err := holder.Exec(t.Context(), "select from things for update"); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- postgres.Transact(ctx, pool, func(tx *postgres.Tx) error {
			tx.Later(postgres.Doing("insert"), insertThing, 2)
			_, err := tx.Exec(ctx, "update things set name = 'y' where id = 1")
			return err
		})
	}()
	testkit.Eventually(t, 20*time.Second, "the update waits", func() bool {
		return ask[int](t, pool, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") == 1
	})
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) || count(t, pool) != 1 {
		t.Errorf("%v, %d rows", err, count(t, pool))
	}
}

func TestRowsThatAreReadLaterAreThereWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	exec(t, pool, "insert into things values (1, 'x'), (2, 'x')")
	refused := errors.New("it is not wanted")
	for _, want := range []error{nil, refused} {
		var ids []int
		var behind int
		err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
			tx.LaterRows(func(rows pgx.Rows) (err error) {
				if want == nil {
					ids, err = pgx.CollectRows(rows, pgx.RowTo[int])
					return err
				}
				return want
			}, postgres.Doing("read"), "select id from things order by id")
			tx.Later(postgres.Doing("insert"), insertThing, 3)
			return tx.QueryRow(t.Context(), "select count(*) from things").Scan(&behind)
		})
		if !errors.Is(err, want) || want == nil && (!slices.Equal(ids, []int{1, 2}) || behind != 3) {
			t.Errorf("%v, %v, %d", err, ids, behind)
		}
	}
	if used := pool.Stat().AcquiredConns(); used != 0 || count(t, pool) != 3 {
		t.Errorf("%d connections are still taken, %d rows", used, count(t, pool))
	}
}

func TestWhoRefusesRowsThatAreReadLastUndoesTheTransaction(t *testing.T) {
	t.Parallel()
	pool := open(t, things)
	refused := errors.New("it is not wanted")
	for _, begun := range []bool{false, true} {
		for _, want := range []error{refused, nil} {
			exec(t, pool, "truncate things")
			err := postgres.Transact(t.Context(), pool, func(tx *postgres.Tx) error {
				if begun {
					insert(t, tx, 1)
				} else {
					tx.Later(postgres.Doing("insert"), insertThing, 1)
				}
				tx.LaterRows(func(pgx.Rows) error { return want }, postgres.Doing("read"), "select id from things")
				return nil
			})
			if committed := count(t, pool) == 1; !errors.Is(err, want) || committed != (want == nil) {
				t.Errorf("begun %t: %v, committed: %t", begun, err, committed)
			}
		}
	}
}
