package postgres

import (
	"context"

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

// Transact runs work in one read-committed transaction. It commits if work returns
// nil and rolls back otherwise; where the connection is lost during the commit, the
// outcome is open and the error is a fault of kind Unavailable.
func Transact(ctx context.Context, pool *pgxpool.Pool, work func(tx *Tx) error) error {
	var tx Tx
	committed := false
	defer func() { // also where work panics
		hooks := tx.otherwise
		if committed {
			hooks = tx.afterwards
		}
		for _, do := range hooks {
			do()
		}
	}()
	err := pgx.BeginFunc(ctx, pool, func(inner pgx.Tx) error {
		tx.Tx = inner
		return work(&tx)
	})
	committed = err == nil
	return Explain(err)
}
