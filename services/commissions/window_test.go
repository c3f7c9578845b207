package commissions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/testkit"
)

const earner = "commissions-earn"

// assertDiffers compares every window and fails unless just this differs; "" is nothing.
func (f *fixture) assertDiffers(want string) {
	f.t.Helper()
	windows, found, err := bus.CheckNow(f.t.Context(), f.deps.Pool, f.Consumers())
	if err != nil || windows != 1 {
		f.t.Fatalf("%d windows are compared, %v", windows, err)
	}
	got := ""
	for _, d := range found {
		got += d.Text
	}
	if got != want {
		f.t.Errorf("it differs in %q, want %q", got, want)
	}
}

func TestACommissionThatIsGoneOrChangedIsMissedInTheWindowOfItsSale(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	start := f.now.Add(-time.Hour).Truncate(time.Minute)
	last := sale(uuid.New(), start.Add(time.Minute-time.Microsecond))
	f.mustEarn(sale(uuid.New(), start.Add(-time.Microsecond)), sale(uuid.New(), start), last, sale(uuid.New(), start.Add(time.Minute)))
	f.exec(`insert into windows (consumer, started_at, ended_at, stream, counted_at, events, centavos, commission_centavos)
		values ($1, $2, $3, 'SALES', $3, 2, $4, $5)`, earner, start, start.Add(time.Minute), 2*259_35, 2*32_42)
	f.assertDiffers("")

	f.exec(`update commissions set commission_amount_centavos = 3000 where commission_id = $1`, last.Data.CommissionID)
	f.assertDiffers("commissions of 6484 centavos were told, 6242 are here")
	f.exec(`update commissions set commission_amount_centavos = 3242, base_amount_centavos = 25934 where commission_id = $1`, last.Data.CommissionID)
	f.assertDiffers("amounts of 51870 centavos were told, 51869 are here")
	f.exec(`update commissions set base_amount_centavos = 25935`)
	f.exec(`create table gone as select * from commissions where created_at = '` + last.CreatedAt.Format(time.RFC3339Nano) + `'`)
	f.exec(`delete from commissions where commission_id = $1`, last.Data.CommissionID)
	f.assertDiffers("2 events were told, 1 are here")
	f.exec(`insert into commissions select * from gone`)
	f.assertDiffers("")
}

func TestAMinuteOfCommissionsIsCountedByItsIndex(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	f.exec(`
		insert into commissions (tenant_id, commission_id, partner_id, kind, source_sale_id, base_amount_centavos, commission_pct_e4,
			commission_amount_centavos, status, available_at, created_at)
		select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'sale', gen_random_uuid(), 100, 10000, 1, 'available', at, at
		from generate_series(now() - interval '5 days', now(), interval '2 minutes') at`)
	f.exec(`analyze commissions`)
	conn, err := f.deps.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `set enable_seqscan = off`); err != nil { // the table is a small one
		t.Fatal(err)
	}
	start := f.now.Add(-48 * time.Hour).Truncate(time.Minute)
	end := start.Add(time.Minute)
	statement := strings.NewReplacer("$1", "@start", "$2", "@end", "$3::text[]", "'{sale.recorded}'::text[]").Replace(earnedQuery)
	testkit.FindsBy(t, conn.Conn(), statement, pgx.NamedArgs{"start": &start, "end": &end}, "commissions_by_time")
}
