package commissions

import (
	"context"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

const beforeLedgerStatement = `
insert into commissions (tenant_id, commission_id, partner_id, campaign_id, plan_id, kind, source_sale_id,
	base_amount_centavos, commission_pct_e4, commission_amount_centavos, status, available_at, created_at)
values ($1, $2, $3, $4, $5, 'sale', $6, $7, 100000, $8, $9, $10, $11)`

// Three partners of two tenants have earned commissions before there was a ledger: some
// at the same instant, some held back, one of nothing.
func TestTheCommissionsThatExistBecomeTransfers(t *testing.T) {
	t.Parallel()
	first, err := fs.ReadFile(migrations, "migrations/00001_commissions.sql")
	if err != nil {
		t.Fatal(err)
	}
	own := len(Migrations) - 1
	before := slices.Clone(Migrations)
	before[own].FS = fstest.MapFS{"00001_commissions.sql": {Data: first}}
	url := testkit.Database(t, before...)
	f := &fixture{t: t, now: event.Instant(time.Now())}
	f.deps.Now, f.deps.Bus = func() time.Time { return f.now }, connect(t, nowhere)
	f.deps.Log = zap.NewNop()
	if f.deps.Pool, err = postgres.Open(t.Context(), url, 8); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.deps.Pool.Close)

	tenant, other, partner, second, nobody := newID(), newID(), newID(), newID(), newID()
	earlier := f.now.Add(-time.Hour)
	book := func(tenant, partner [16]byte, amount money.BRL, status string, availableAt, createdAt time.Time) {
		f.exec(beforeLedgerStatement, tenant, newID(), partner, newID(), newID(), newID(), int64(10*amount), int64(amount), status, availableAt, createdAt)
	}
	book(tenant, partner, 10_00, "available", earlier, earlier)
	book(tenant, partner, 20_00, "available", earlier, earlier)
	book(tenant, partner, 5_00, "pending", f.now.Add(day), earlier)
	book(tenant, partner, 1_00, "pending", f.now, earlier.Add(time.Microsecond))
	book(tenant, second, 7_00, "pending", f.now.Add(day), earlier)
	book(tenant, nobody, 0, "available", earlier, earlier)
	book(other, partner, 3_00, "available", earlier, earlier)

	if err := postgres.Migrate(context.Background(), url, Migrations...); err != nil {
		t.Fatal(err)
	}
	f.wire()
	for what, row := range map[string]struct{ got, want balances }{
		"the partner":           {f.books(tenant, partner), balances{Available: 30_00, Pending: 6_00}},
		"another":               {f.books(tenant, second), balances{Pending: 7_00}},
		"who earned nothing":    {f.books(tenant, nobody), balances{}},
		"one of another tenant": {f.books(other, partner), balances{Available: 3_00}},
	} {
		if row.got != row.want {
			t.Errorf("%s has %+v, want %+v", what, row.got, row.want)
		}
	}
	f.balanced(tenant)
	f.balanced(other)
	if n := len(f.dump(`select * from transfers`)); n != 6 {
		t.Errorf("%d transfers", n)
	}

	// The books go on from there.
	if n := f.mustRelease(); n != 1 {
		t.Errorf("%d commissions were due", n)
	}
	f.mustEarn(sale(tenant, f.now, soldBy(partner)))
	if got := f.books(tenant, partner); got != (balances{Available: 31_00 + 32_42, Pending: 5_00}) {
		t.Errorf("afterwards %+v", got)
	}
	f.now = f.now.Add(day)
	if n := f.mustRelease(); n != 2 {
		t.Errorf("%d commissions were held", n)
	}
	f.balanced(tenant)
}
