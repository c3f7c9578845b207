package sales

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
)

var eraseCommand = service.Command{
	Usage: "customer erase --tenant ID --ref REF", About: "forget a customer: its reference, and what was noted of its sales",
	Run: runEraseCommand,
}

func runEraseCommand(ctx context.Context, deps service.Deps, args []string) error {
	flags := flag.NewFlagSet("customer erase", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	tenant, ref := flags.String("tenant", "", ""), flags.String("ref", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *ref == "" {
		return errors.New("name the tenant with --tenant, and the customer with --ref as the tenant's customer_ref does")
	}
	id, err := readTenantID(*tenant)
	if err != nil {
		return fmt.Errorf("--tenant: %w", err)
	}
	s, err := New(ctx, Config{}, deps)
	if err != nil {
		return err
	}
	done, err := s.eraseCustomer(ctx, id, *ref)
	if err != nil {
		return fmt.Errorf("%w (erased so far: %s)", err, done)
	}
	fmt.Printf("erased of %s\n", done)
	return nil
}

// erasure counts what was told of a customer and is forgotten.
type erasure struct{ sales, conversions, refunds int64 }

func (e erasure) String() string {
	return fmt.Sprintf("%d sales, %d conversions and %d refunds", e.sales, e.conversions, e.refunds)
}

const tenantExistsQuery = `select exists (select from tenants where tenant_id = $1)`

// eraseCustomer forgets the reference of a customer, the notes of all sales and
// conversions that bear it, and the reasons of their refunds. Amounts, ids and the
// external_refs of the calls stay, and with them the books and the answers to repeats,
// which are not told to differ in what is forgotten. No event carries any of it, so
// there is nothing to forget outside this database.
//
// It reads the tenant's rows in the order of their ids, a batch in each transaction: it
// holds up nobody for longer than a batch takes, and may be broken off and begun anew.
// What is being reported of the customer meanwhile may be left for the next time.
func (s *Service) eraseCustomer(ctx context.Context, tenant uuid.UUID, ref string) (done erasure, err error) {
	var exists bool
	if err := s.deps.Pool.QueryRow(ctx, tenantExistsQuery, tenant).Scan(&exists); err != nil {
		return done, fmt.Errorf("read tenant: %w", postgres.Explain(err))
	}
	if !exists {
		return done, fmt.Errorf("there is no tenant %s", tenant)
	}
	e := eraser{tenant, ref, event.Instant(s.deps.Now()), eraseAtOnce}
	for _, step := range []eraseStep{e.sales, e.conversions} {
		var after uuid.UUID
		for more := true; more; {
			var batch erasure
			err := postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) (err error) {
				batch, after, more, err = step(ctx, tx, after)
				return err
			})
			if err != nil {
				return done, fmt.Errorf("erase customer: %w", err)
			}
			done = erasure{done.sales + batch.sales, done.conversions + batch.conversions, done.refunds + batch.refunds}
		}
	}
	return done, nil
}

// eraseAtOnce is how many rows one transaction reads. No index leads to a customer, for
// which every sale would pay.
const eraseAtOnce = 10_000

type eraser struct {
	tenant uuid.UUID
	ref    string
	at     time.Time
	atOnce int
}

// eraseStep sees to the rows that follow after, and tells the last of them and whether
// there may be more.
type eraseStep func(ctx context.Context, tx *postgres.Tx, after uuid.UUID) (done erasure, last uuid.UUID, more bool, err error)

const (
	eraseSalesStatement = `
with seen as (
	select sale_id, customer_ref from sales where tenant_id = $1 and sale_id > $2 order by sale_id limit $3),
erased as (
	update sales s set customer_ref = null, notes = null, erased_at = $5
	from seen where s.tenant_id = $1 and s.sale_id = seen.sale_id and seen.customer_ref = $4
	returning s.sale_id)
select count(*), coalesce((select sale_id from seen order by sale_id desc limit 1), $2), array(select sale_id from erased) from seen`

	eraseReasonsStatement = `update refunds set reason = null, erased_at = $3 where tenant_id = $1 and sale_id = any($2)`

	eraseConversionsStatement = `
with seen as (
	select conversion_id, customer_ref from conversions where tenant_id = $1 and conversion_id > $2 order by conversion_id limit $3),
erased as (
	update conversions c set customer_ref = null, notes = null, erased_at = $5
	from seen where c.tenant_id = $1 and c.conversion_id = seen.conversion_id and seen.customer_ref = $4
	returning c.conversion_id)
select count(*), coalesce((select conversion_id from seen order by conversion_id desc limit 1), $2), array(select conversion_id from erased) from seen`
)

func (e eraser) sales(ctx context.Context, tx *postgres.Tx, after uuid.UUID) (done erasure, last uuid.UUID, more bool, err error) {
	ids, last, more, err := e.erase(ctx, tx, eraseSalesStatement, after)
	if err != nil || len(ids) == 0 {
		return done, last, more, err
	}
	// Only now: a refund that held its sale's row meanwhile is there since.
	tag, err := tx.Exec(ctx, eraseReasonsStatement, e.tenant, ids, e.at)
	return erasure{sales: int64(len(ids)), refunds: tag.RowsAffected()}, last, more, err
}

func (e eraser) conversions(ctx context.Context, tx *postgres.Tx, after uuid.UUID) (done erasure, last uuid.UUID, more bool, err error) {
	ids, last, more, err := e.erase(ctx, tx, eraseConversionsStatement, after)
	return erasure{conversions: int64(len(ids))}, last, more, err
}

func (e eraser) erase(ctx context.Context, tx *postgres.Tx, statement string, after uuid.UUID) (erased []uuid.UUID, last uuid.UUID, more bool, err error) {
	var seen int
	err = tx.QueryRow(ctx, statement, e.tenant, after, e.atOnce, e.ref, e.at).Scan(&seen, &last, &erased)
	return erased, last, seen == e.atOnce, err
}
