package sales

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
)

// A repeat is a report whose external_ref the tenant has used before. It is answered
// with the first result, whatever else it says and whatever the catalogue says now.

// saleRef is what a sale is recognised by.
type saleRef struct {
	tenant      uuid.UUID
	externalRef string
}

// A sale that was recorded before is locked for the moment of looking it up, since a lock
// is written and so, like the sale itself, waits for a synchronous standby: what the primary
// alone has is not answered.
const findSaleQuery = `select ` + saleColumns + ` from sales where tenant_id = $1 and external_ref = $2 for key share`

// findSale returns the sale that the reference recorded, if there is one.
func findSale(ctx context.Context, pool *pgxpool.Pool, tenant uuid.UUID, externalRef string) (sale, bool, error) {
	s, found, err := one(ctx, pool, scanSale, findSaleQuery, tenant, externalRef)
	if err != nil {
		return sale{}, false, fmt.Errorf("find sale: %w", err)
	}
	return s, found, nil
}

const findSalesQuery = `
select s.* from unnest($1::uuid[], $2::text[]) as wanted (tenant_id, external_ref)
cross join lateral (
	select tenant_id, ` + saleColumns + ` from sales
	where sales.tenant_id = wanted.tenant_id and sales.external_ref = wanted.external_ref
	for key share) s`

// findSales returns the sales that the references of batch[i], for each i of rest,
// recorded before.
func findSales(ctx context.Context, pool *pgxpool.Pool, batch []*entry, rest []int) (map[saleRef]sale, error) {
	tenants, refs := make([]uuid.UUID, len(rest)), make([]string, len(rest))
	for n, i := range rest {
		tenants[n], refs[n] = batch[i].tenant, batch[i].sale.ExternalRef
	}
	rows, err := pool.Query(ctx, findSalesQuery, tenants, refs)
	if err != nil {
		return nil, fmt.Errorf("find sales: %w", postgres.Explain(err))
	}
	defer rows.Close()
	known := make(map[saleRef]sale, len(rest))
	for rows.Next() {
		var tenant uuid.UUID
		var s sale
		if err := rows.Scan(append([]any{&tenant}, s.targets()...)...); err != nil {
			return nil, fmt.Errorf("find sales: %w", err)
		}
		known[saleRef{tenant, s.ExternalRef}] = s
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("find sales: %w", postgres.Explain(err))
	}
	return known, nil
}

// differences names the members of a repeat that do not say what the first report
// said. Values are compared, not spellings, and leaving sold_at out is no difference.
func (s sale) differences(r report) []string {
	return differing(
		compared{"amount_brl", s.Amount == r.Amount},
		compared{"campaign_id", s.CampaignID == r.CampaignID},
		compared{"customer_ref", s.erased || equal(s.CustomerRef, r.CustomerRef)},
		compared{"notes", s.erased || equal(s.Notes, r.Notes)},
		compared{"plan_id", s.PlanID == r.PlanID},
		compared{"referral_code", s.ReferralCode == r.ReferralCode},
		compared{"sold_at", r.SoldAt == nil || s.SoldAt.Equal(r.SoldAt.Time)},
	)
}

// compared is a member of a repeat, and whether it says what the first call said.
type compared struct {
	member string
	same   bool
}

// differing are the names of the members that are not the same, in the order given,
// which is the alphabetical one.
func differing(members ...compared) (names []string) {
	for _, m := range members {
		if !m.same {
			names = append(names, m.member)
		}
	}
	return names
}

func equal[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

const mismatchName = "Idempotency-Mismatch"

// mismatchHeader tells the caller which members of a repeat were not heeded.
func mismatchHeader(names []string) map[string]string {
	if len(names) == 0 {
		return nil
	}
	return map[string]string{mismatchName: strings.Join(names, ", ")}
}
