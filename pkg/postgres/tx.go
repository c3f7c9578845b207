package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is a transaction that knows what to do once it is committed.
type Tx struct {
	pgx.Tx
	afterwards []func()
}

// AfterCommit has do called once this transaction has committed, and never if it
// rolls back. What do achieves may be lost with the process: it is for haste, such
// as waking a worker early, never for a promise.
func (tx *Tx) AfterCommit(do func()) { tx.afterwards = append(tx.afterwards, do) }

// Transact runs work in one read-committed transaction. It commits if work returns
// nil and rolls back otherwise; where the connection is lost during the commit, the
// outcome is open and the error is a fault of kind Unavailable.
func Transact(ctx context.Context, pool *pgxpool.Pool, work func(tx *Tx) error) error {
	var tx Tx
	err := pgx.BeginFunc(ctx, pool, func(inner pgx.Tx) error {
		tx.Tx = inner
		return work(&tx)
	})
	if err != nil {
		return Explain(err)
	}
	for _, do := range tx.afterwards {
		do()
	}
	return nil
}
