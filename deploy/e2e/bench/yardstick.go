package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

// The least that must happen in PostgreSQL for a sale that is recorded once and told
// of: the columns and keys of the sales service, without partitions, checks, or a
// list of what is still to be published.
const yardstickSchema = `
create table sales (
	tenant_id           uuid        not null,
	sale_id             uuid        not null,
	external_ref        text        collate "C" not null,
	referral_code       text        collate "C" not null,
	partner_id          uuid        not null,
	campaign_id         uuid        not null,
	plan_id             uuid        not null,
	amount_centavos     bigint      not null,
	commission_id       uuid        not null,
	commission_pct_e4   integer     not null,
	commission_centavos bigint      not null,
	refunded_centavos   bigint      not null default 0,
	hold_days           integer     not null,
	sold_at             timestamptz not null,
	customer_ref        text,
	notes               text,
	created_at          timestamptz not null,
	primary key (tenant_id, sale_id),
	unique (tenant_id, external_ref)
);
create table outbox (
	created_at  timestamptz not null,
	event_id    uuid        not null,
	name        text        not null,
	tenant_id   uuid        not null,
	body        bytea       not null,
	traceparent text        not null default '',
	primary key (created_at, event_id)
);
alter table outbox alter column body set storage external;`

// One transaction of pgbench. Ids grow with time, as UUIDv7 do.
const yardstickScript = `\set i :i + 1
\set n :i * 1000 + :client_id
with recorded as (
	insert into sales (tenant_id, sale_id, external_ref, referral_code, partner_id, campaign_id, plan_id, amount_centavos,
	                   commission_id, commission_pct_e4, commission_centavos, hold_days, sold_at, customer_ref, notes, created_at)
	values ('0199d3a0-0000-7000-8000-000000000001', lpad(to_hex(:n::bigint), 32, '0')::uuid, 'bench-' || :n::bigint, 'ana.souza',
	        '0199d3a0-0000-7000-8000-000000000002', '0199d3a0-0000-7000-8000-000000000003', '0199d3a0-0000-7000-8000-000000000004', 10050,
	        '0199d3a0-0000-7000-8000-000000000005', 100000, 1005, 0, now(), 'cliente@example.com', null, now())
	on conflict (tenant_id, external_ref) do nothing
	returning created_at, sale_id)
insert into outbox (created_at, event_id, name, tenant_id, body)
select created_at, sale_id, 'sale.recorded', '0199d3a0-0000-7000-8000-000000000001', :body::bytea from recorded;
`

const yardstickDatabase = "yardstick"

// yardstick runs pgbench on fresh tables. Of the effort it knows PostgreSQL's, which
// includes the start of the connections.
func yardstick(ctx context.Context, g *ground, clients, seconds int) (m measured, err error) {
	if err := g.fresh(ctx, yardstickDatabase); err != nil {
		return m, err
	}
	conn, err := pgx.Connect(ctx, g.postgres.URL(yardstickDatabase))
	if err != nil {
		return m, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, yardstickSchema)
	conn.Close(ctx)
	if err != nil {
		return m, fmt.Errorf("make the yardstick's tables: %w", err)
	}
	body, err := sampleEnvelope()
	if err != nil {
		return m, err
	}
	script := filepath.Join(g.dir, "yardstick.sql")
	if err := os.WriteFile(script, []byte(yardstickScript), 0o600); err != nil {
		return m, fmt.Errorf("write pgbench's script: %w", err)
	}
	if err := g.settle(ctx); err != nil {
		return m, err
	}
	warm, err := pgbench(ctx, g, script, body, clients, int(warmUp.Seconds()), 0)
	if err != nil {
		return m, err
	}
	before := g.postgresCPU()
	counted, err := pgbench(ctx, g, script, body, clients, seconds, 1_000_000_000)
	if err != nil {
		return m, err
	}
	if counted.done == 0 || counted.perSecond == 0 {
		return m, fmt.Errorf("pgbench has done nothing in %d s; is this machine busy?", seconds)
	}
	m = measured{counted.perSecond, effort{postgres: g.postgresCPU() - before}.perSale(counted.done)}
	for _, table := range []string{"sales", "outbox"} {
		if err := g.expect(ctx, "rows of the yardstick", yardstickDatabase, "select count(*) from "+table, warm.done+counted.done); err != nil {
			return m, err
		}
	}
	return m, nil
}

// sampleEnvelope is the event of a sale like those that the service is sent.
func sampleEnvelope() ([]byte, error) {
	id := uuid.MustParse("0199d3a0-0000-7000-8000-000000000001")
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	e, err := event.Seal(id, id.String(), at, event.SaleRecorded{
		SaleID: id, PartnerID: id, CampaignID: id, PlanID: id, ExternalRef: "bench-000-" + refDigits, Amount: money.BRL(100_50), SoldAt: at,
		CommissionID: id, CommissionPct: money.Pct(10_0000), CommissionAmount: money.BRL(10_05),
	}, "")
	return e.Body, err
}

// pgbenchResult is what pgbench reports.
type pgbenchResult struct {
	done      int64
	perSecond float64 // without the time that connecting takes
}

var (
	pgbenchDone = regexp.MustCompile(`(?m)^number of transactions actually processed: (\d+)`)
	pgbenchRate = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)
)

// pgbench runs the script; first keeps its ids apart from those of other runs. On a
// busy machine a short run may be over before the last client has connected, and has
// done nothing then.
func pgbench(ctx context.Context, g *ground, script string, body []byte, clients, seconds, first int) (result pgbenchResult, err error) {
	cmd := exec.CommandContext(ctx, filepath.Join(g.programs, "pgbench"),
		"-M", "prepared", "-n", "-j", strconv.Itoa(min(2, clients)), "-c", strconv.Itoa(clients), "-T", strconv.Itoa(seconds),
		"-f", script, "-D", "i="+strconv.Itoa(first), "-D", "body="+string(body), g.postgres.URL(yardstickDatabase))
	output, err := cmd.CombinedOutput()
	if err != nil {
		return result, fmt.Errorf("run pgbench: %w\n%s", err, output)
	}
	if done := pgbenchDone.FindSubmatch(output); done != nil {
		result.done, err = strconv.ParseInt(string(done[1]), 10, 64)
	}
	if rate := pgbenchRate.FindSubmatch(output); rate != nil && err == nil {
		result.perSecond, err = strconv.ParseFloat(string(rate[1]), 64)
	}
	return result, err
}
