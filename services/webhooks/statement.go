package webhooks

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
)

// runPlanned runs a statement as a transaction of its own, under a plan that a
// connection makes once, and returns its rows. Without an error it is committed; after
// one it may or may not be, and the error is a fault where the database is away.
func runPlanned[T any](ctx context.Context, pool *pgxpool.Pool, scan pgx.RowToFunc[T], statement string, args ...any) ([]T, error) {
	var both pgx.Batch // one round trip, and one transaction
	both.Queue(postgres.PlanOnce)
	both.Queue(statement, args...)
	results := pool.SendBatch(ctx, &both)
	list, err := func() ([]T, error) {
		if _, err := results.Exec(); err != nil {
			return nil, err
		}
		rows, err := results.Query()
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scan)
	}()
	if err := errors.Join(err, results.Close()); err != nil { // the commit is done when the batch is closed
		return nil, postgres.Explain(err)
	}
	return list, nil
}

// A page of a list is planned for what this call narrows it to, and told to walk along
// indexes, since how many rows there are is foreseen no better.
const lookUpStatement = `
select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

// lookUp reads the rows of a query that walks along indexes. No plan of it is kept.
func lookUp(ctx context.Context, pool *pgxpool.Pool, query string, arguments pgx.NamedArgs, read func(pgx.Rows) error) error {
	return postgres.Transact(ctx, pool, func(tx *postgres.Tx) error {
		if _, err := tx.Exec(ctx, lookUpStatement); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, query, pgx.QueryExecModeCacheDescribe, arguments)
		if err != nil {
			return err
		}
		return read(rows)
	})
}
