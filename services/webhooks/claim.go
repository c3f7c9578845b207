package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// What becomes of a delivery. Until then it is pending, and claimed once for each attempt
// that its endpoint allows: a claim is only taken back by its very claimant, who knows
// that no byte was sent.
const (
	stateDelivered = "delivered"
	stateFailed    = "failed"
	stateUnknown   = "unknown" // its worker died; the receiver may have it or not
	stateSkipped   = "skipped" // it was not sent, for one of the reasons below
)

// Why an endpoint is not sent an event, or not again.
const (
	reasonEvent    = "event"    // it did not choose it, so that there is no delivery
	reasonFilter   = "filter"   // its filter keeps it away
	reasonDisabled = "disabled" // it is disabled
	reasonDeleted  = "deleted"  // it was deleted before the event was sent
	reasonOutdated = "outdated" // it had not taken it in before its event was too old
)

// claimed is one delivery that this worker, and no other, may send.
type claimed struct {
	lane
	id          uuid.UUID
	claim       uuid.UUID
	asked       time.Time // when its worker began to claim it, by that worker's clock: before the lease begins
	createdAt   time.Time // of the event
	eventID     event.ID
	name        string
	body        []byte
	traceparent string
	url         string
	sealed      sealedSecrets // of the endpoint
	attempts    int           // that were made before
	allowed     int           // attempts in all, as the endpoint says; 1: it is sent once
}

// The oldest deliveries of each lane that were never attempted, as many as it was granted.
// What another worker is just claiming is passed over, not waited for. No lane has a
// delivery of an event from before $5, which spares a look at older partitions, nor one
// before its first; both are whole milliseconds, since ids know no finer time. What has
// ended leaves dead entries at the front of the index, and a look from its start would
// walk through all of them each time. What is put back is found by the sweep, and so is
// what changed between the look and its lock: a row is updated at the place where it was
// locked, which spares another look at the index.
const claimStatement = `
with picked as (
	select next.*, url, max_attempts, ` + signingColumns + `
	from unnest($1::uuid[], $2::uuid[], $3::integer[], $6::uuid[]) as granted (tenant_id, endpoint_id, most, first)` + ofTheirEndpoints + `
	cross join lateral (
		select d.ctid as place from pending d
		where d.tenant_id = granted.tenant_id and d.endpoint_id = granted.endpoint_id
			and d.delivery_id >= granted.first and d.claim is null and d.due_at is null
		order by d.delivery_id limit granted.most
		for update skip locked) next),` + claimPicked + `
	and e.created_at >= $5
order by taken.delivery_id`

// What is due to be attempted again in each lane, the longest due first, where its
// endpoint still allows that.
const claimAgainStatement = `
with picked as (
	select next.*, url, max_attempts, ` + signingColumns + `
	from unnest($1::uuid[], $2::uuid[], $3::integer[]) as granted (tenant_id, endpoint_id, most)` + ofTheirEndpoints + `
	cross join lateral (
		select d.ctid as place from pending d
		where d.tenant_id = granted.tenant_id and d.endpoint_id = granted.endpoint_id
			and d.due_at <= now() and d.attempts < p.max_attempts and d.claim is null
		order by d.due_at limit granted.most
		for update skip locked) next),` + claimPicked

const (
	ofTheirEndpoints = `
	join endpoints p on p.tenant_id = granted.tenant_id and p.endpoint_id = granted.endpoint_id
		and p.deleted_at is null and p.disabled_reason is null`

	claimPicked = `
taken as (
	update pending d set claim = $4, claimed_at = now(), allowed = picked.max_attempts
	from picked
	where d.ctid = picked.place
	returning d.tenant_id, d.endpoint_id, d.delivery_id, d.created_at, d.event_id, d.attempts, d.allowed,
		picked.url, picked.secret, picked.previous_secret, picked.standard_webhooks)
select taken.*, e.name, e.body, e.traceparent
from taken
join events e on e.tenant_id = taken.tenant_id and e.event_id = taken.event_id and e.created_at = taken.created_at`
)

// taker claims deliveries of the lanes under the token. When it returns without an error
// the claim is committed; after one it may or may not have been made.
type taker func(ctx context.Context, pool *pgxpool.Pool, grants []grant, token uuid.UUID) ([]claimed, error)

// take claims what was never attempted.
func take(ctx context.Context, pool *pgxpool.Pool, grants []grant, token uuid.UUID) ([]claimed, error) {
	tenants, endpoints, most := columnsOf(grants)
	first := make([]uuid.UUID, len(grants))
	oldest := grants[0].since
	for i, g := range grants {
		first[i] = firstDeliveryID(g.since)
		if g.since.Before(oldest) {
			oldest = g.since
		}
	}
	jobs, err := runPlanned(ctx, pool, scanClaimed, claimStatement, tenants, endpoints, most, token, oldest.Truncate(time.Millisecond), first)
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	return under(token, jobs), nil
}

// takeAgain claims what has failed before and is due.
func takeAgain(ctx context.Context, pool *pgxpool.Pool, grants []grant, token uuid.UUID) ([]claimed, error) {
	tenants, endpoints, most := columnsOf(grants)
	jobs, err := runPlanned(ctx, pool, scanClaimed, claimAgainStatement, tenants, endpoints, most, token)
	if err != nil {
		return nil, fmt.Errorf("claim deliveries again: %w", err)
	}
	return under(token, jobs), nil
}

func columnsOf(grants []grant) (tenants, endpoints []uuid.UUID, most []int) {
	for _, g := range grants {
		tenants, endpoints, most = append(tenants, g.tenant), append(endpoints, g.endpoint), append(most, g.most())
	}
	return tenants, endpoints, most
}

func scanClaimed(row pgx.CollectableRow) (job claimed, err error) {
	var eventID [16]byte
	columns := []any{&job.tenant, &job.endpoint, &job.id, &job.createdAt, &eventID, &job.attempts, &job.allowed, &job.url}
	err = row.Scan(slices.Concat(columns, job.sealed.columns(), []any{&job.name, &job.body, &job.traceparent})...)
	job.eventID = eventID
	return job, err
}

func under(token uuid.UUID, jobs []claimed) []claimed {
	for i := range jobs {
		jobs[i].claim = token
	}
	return jobs
}

const releaseStatement = `
update pending set claim = null, claimed_at = null
where claim = $1 and ($2::uuid[] is null or delivery_id = any($2))`

// release puts back what was claimed under the token and has surely not been sent:
// the deliveries of these ids, or all of them where ids is nil.
func release(ctx context.Context, pool *pgxpool.Pool, token uuid.UUID, ids []uuid.UUID) error {
	if _, err := pool.Exec(ctx, releaseStatement, token, ids); err != nil {
		return fmt.Errorf("release claims: %w", postgres.Explain(err))
	}
	return nil
}
