package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is a transaction that knows what to do once it has ended.
type Tx struct {
	pgx.Tx
	afterwards []func()
	otherwise  []func()
}

// AfterCommit has do called once this transaction has committed, and never if it
// rolls back. What do achieves may be lost with the process: it is for haste, such
// as waking a worker early, never for a promise.
func (tx *Tx) AfterCommit(do func()) { tx.afterwards = append(tx.afterwards, do) }

// AfterFailure has do called once this transaction has ended without a sure commit: it
// was rolled back, or the connection was lost and it may have committed all the same.
func (tx *Tx) AfterFailure(do func()) { tx.otherwise = append(tx.otherwise, do) }

// endWithin is how long a commit or a rollback may take.
const endWithin = 10 * time.Second

// Transact runs work in one read-committed transaction. It commits if work returns
// nil and rolls back otherwise, also where ctx has ended by then. A commit that has
// begun is seen through, whatever becomes of ctx: its outcome is known wherever it can
// be. Where the connection is lost during the commit, the outcome is open and the error
// is a fault of kind Unavailable.
func Transact(ctx context.Context, pool *pgxpool.Pool, work func(tx *Tx) error) error {
	inner, err := pool.Begin(ctx)
	if err != nil {
		return Explain(err)
	}
	tx := Tx{Tx: inner}
	committed := false
	defer func() { // also where work panics
		hooks := tx.afterwards
		if !committed {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
			defer cancel()
			_ = inner.Rollback(ending) // what cannot be told to roll back has lost its connection, and does
			hooks = tx.otherwise
		}
		for _, do := range hooks {
			do()
		}
	}()
	if err := work(&tx); err != nil {
		return Explain(err)
	}
	if err := ctx.Err(); err != nil {
		return Explain(err)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	err = inner.Commit(ending)
	committed = err == nil
	return Explain(err)
}
