package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is a transaction that asks as little of the network as it can, and knows what to do
// once it has ended. It begins with its first statement, in the same round trip.
type Tx struct {
	conn  *pgxpool.Conn
	inner pgx.Tx // nil: nothing was sent yet
	later []statement

	afterwards []func()
	otherwise  []func()
}

// statement is one whose outcome nobody waits for yet.
type statement struct {
	sql     string
	args    []any
	read    func(pgx.Rows) error // nil: it returns none
	explain func(error) error
}

// Later has a statement executed together with the next one or, if none follows, with
// the commit: one round trip for all of them. It is for what returns no rows and decides
// nothing that comes next. Its error is passed through explain, ends the transaction and
// is returned by whatever came next, or by Transact. The arguments must stay as they are.
func (tx *Tx) Later(explain func(error) error, sql string, args ...any) {
	tx.later = append(tx.later, statement{sql: sql, args: args, explain: explain})
}

// LaterRows is Later for a query whose rows are read before the answer of whatever comes
// next, and not needed for asking it. With none to follow they are read before the commit
// is asked for: an error of read ends the transaction too.
func (tx *Tx) LaterRows(read func(pgx.Rows) error, explain func(error) error, sql string, args ...any) {
	tx.later = append(tx.later, statement{sql, args, read, explain})
}

// Doing explains the error of a statement by what it was to do, for Later.
func Doing(what string) func(error) error {
	return func(err error) error { return fmt.Errorf("%s: %w", what, err) }
}

// Exec executes a statement and waits for its outcome.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if tx.direct() {
		return tx.inner.Exec(ctx, sql, args...)
	}
	results, err := tx.send(ctx, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := results.Exec()
	if closing := results.Close(); err == nil {
		err = closing
	}
	return tag, err
}

// Query sends a query. No other statement may follow before its rows are closed.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if tx.direct() {
		return tx.inner.Query(ctx, sql, args...)
	}
	results, err := tx.send(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	found, err := results.Query()
	if err != nil {
		_ = results.Close() // the error is told already
		return nil, err
	}
	return &rows{Rows: found, results: results}, nil
}

// QueryRow is Query for at most one row. Its error is that of Scan.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if tx.direct() {
		return tx.inner.QueryRow(ctx, sql, args...)
	}
	found, err := tx.Query(ctx, sql, args...)
	return row{found, err}
}

// Conn is the connection that this transaction has to itself.
func (tx *Tx) Conn() *pgx.Conn { return tx.conn.Conn() }

// direct tells whether there is nothing to be sent ahead of a statement.
func (tx *Tx) direct() bool { return tx.inner != nil && len(tx.later) == 0 }

// send sends a statement, with all that is to come before it, and returns its results
// alone: what came before has succeeded.
func (tx *Tx) send(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	var batch pgx.Batch
	begins, before := tx.inner == nil, tx.later
	if begins {
		batch.BeginTx(pgx.TxOptions{})
		before = append([]statement{{explain: Doing("begin")}}, before...)
	}
	for _, s := range tx.later {
		batch.Queue(s.sql, s.args...)
	}
	batch.Queue(sql, args...)
	tx.later = nil
	results := tx.conn.SendBatch(ctx, &batch)
	if begins {
		tx.inner = results.Tx()
	}
	for _, s := range before {
		if err := s.finish(results); err != nil {
			_ = results.Close() // the error is told already
			return nil, s.explain(err)
		}
	}
	return results, nil
}

// finish reads the statement's results, which are the next ones.
func (s statement) finish(results pgx.BatchResults) error {
	if s.read == nil {
		_, err := results.Exec()
		return err
	}
	found, err := results.Query()
	if err != nil {
		return err
	}
	defer found.Close()
	if err := s.read(found); err != nil {
		return err
	}
	found.Close()
	return found.Err()
}

const nothingStatement = `select`

// commit ends the transaction. A transaction that never said anything has no end.
func (tx *Tx) commit(ctx context.Context) error {
	if tx.direct() {
		return tx.inner.Commit(ctx)
	}
	if tx.inner == nil && len(tx.later) == 0 {
		return nil
	}
	if slices.ContainsFunc(tx.later, func(s statement) bool { return s.read != nil }) {
		if _, err := tx.Exec(ctx, nothingStatement); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "commit")
	return err
}

func (tx *Tx) rollback(ctx context.Context) {
	if tx.inner != nil {
		_ = tx.inner.Rollback(ctx) // what cannot be told to roll back has lost its connection, and does
	}
}

// rows are the rows of a query that had others ahead of it.
type rows struct {
	pgx.Rows
	results pgx.BatchResults
	closing error
}

func (r *rows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *rows) Close() {
	r.Rows.Close()
	r.closing = r.results.Close()
}

func (r *rows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.closing
}

// row is the first of some rows.
type row struct {
	rows pgx.Rows
	err  error
}

func (r row) Scan(into ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if r.rows.Next() {
		if err := r.rows.Scan(into...); err != nil {
			return err
		}
		r.rows.Close()
		return r.rows.Err()
	}
	if err := r.rows.Err(); err != nil {
		return err
	}
	return pgx.ErrNoRows
}

// AfterCommit has do called once this transaction has committed, and never if it
// rolls back. What do achieves may be lost with the process: it is for haste, such
// as waking a worker early, never for a promise.
func (tx *Tx) AfterCommit(do func()) { tx.afterwards = append(tx.afterwards, do) }

// AfterFailure has do called once this transaction has ended without a sure commit: it
// was rolled back, or the connection was lost and it may have committed all the same.
func (tx *Tx) AfterFailure(do func()) { tx.otherwise = append(tx.otherwise, do) }

const vouchStatement = `select pg_logical_emit_message(true, 'partilha', '')`

// Vouch has the commit of tx wait for the standby, where there is a synchronous one, as if
// tx had written: once it has committed, what it has read is not lost with the primary.
//
// Without it a transaction that only reads may see what the standby lacks. A commit that
// gave up waiting, because its caller did, stays in the primary for everybody to see. So
// whoever takes a row for the proof that something is done, and acts on it, vouches for it.
// A transaction that writes or locks a row need not.
func (tx *Tx) Vouch() { tx.Later(Doing("vouch for what was read"), vouchStatement) }

// endWithin is how long a commit or a rollback may take. A call over HTTP may come to it
// at the end of its own ten seconds, and is to be answered all the same.
const endWithin = 4 * time.Second

// Transact runs work in one read-committed transaction. It commits if work returns
// nil and rolls back otherwise, also where ctx has ended by then. A commit that has
// begun is seen through, whatever becomes of ctx: its outcome is known wherever it can
// be. Where the connection is lost during the commit, the outcome is open and the error
// is a fault of kind Unavailable.
func Transact(ctx context.Context, pool *pgxpool.Pool, work func(tx *Tx) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return Explain(err)
	}
	tx := Tx{conn: conn}
	committed := false
	defer func() { // also where work panics
		hooks := tx.afterwards
		if !committed {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
			defer cancel()
			tx.rollback(ending)
			hooks = tx.otherwise
		}
		conn.Release()
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
	err = tx.commit(ending)
	committed = err == nil
	return Explain(err)
}
