package bus_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// Left alone, PostgreSQL would plan this statement for each call, and read the whole of a
// table that is small so far.
func TestAHandlersStatementsAreNotPlannedAnewAndLookUp(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	if _, err := w.pool.Exec(t.Context(), "create table things (id integer primary key); insert into things values (7); analyze things"); err != nil {
		t.Fatal(err)
	}
	const statement = "select things.id from unnest($1::integer[]) as wanted (id) join things using (id)"
	var anew, once int
	var plan string
	look := func(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
		for range events {
			if _, err := tx.Exec(ctx, statement, []int{7}); err != nil {
				return err
			}
		}
		if err := tx.QueryRow(ctx, "select custom_plans, generic_plans from pg_prepared_statements where statement = $1", statement).Scan(&anew, &once); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "explain select from things where id = 7")
		if err != nil {
			return err
		}
		plan, err = pgx.CollectOneRow(rows, pgx.RowTo[string])
		return err
	}
	if err := bus.On(consumer, look).Apply(t.Context(), w.pool, sale(t, "one"), sale(t, "other"), sale(t, "third")); err != nil {
		t.Fatal(err)
	}
	if anew != 0 || once != 3 || !strings.HasPrefix(plan, "Index Only Scan") {
		t.Errorf("%d plans for one call, %d for all; one thing is looked up by %q", anew, once, plan)
	}
}
