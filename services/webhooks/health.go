package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
)

const (
	// failsFor is how long an endpoint may do nothing but fail before it is disabled.
	failsFor = 5 * 24 * time.Hour
	// reasonGone is shown on an endpoint whose receiver said that it is no longer there.
	reasonGone = "its receiver answered 410 Gone"
	// reasonFailing begins what is shown on an endpoint that failed for too long.
	reasonFailing = "every attempt has failed since "
)

// health gathers how the endpoints' receivers do, to be written to the endpoints once in
// a while; what could not be written waits for the next time. What is lost of it with the
// process will be seen again. It is safe for concurrent use.
type health struct {
	pool *pgxpool.Pool
	log  *zap.Logger

	mu   sync.Mutex
	news map[lane]news
}

// news is what has been seen of an endpoint since it was last written down.
type news struct {
	succeeded bool       // at least once
	failing   *time.Time // the first failure since the last success; nil without one
	gone      bool       // the receiver said so
}

// after is what has been seen in all if it was seen after earlier.
func (n news) after(earlier news) news {
	if n.succeeded {
		return n
	}
	n.succeeded, n.gone = earlier.succeeded, n.gone || earlier.gone
	n.failing = cmp.Or(earlier.failing, n.failing)
	return n
}

func newHealth(pool *pgxpool.Pool, log *zap.Logger) *health {
	return &health{pool: pool, log: log, news: map[lane]news{}}
}

// note adds an outcome. That its receiver is gone counts only for an endpoint that has
// opted into more than the one attempt.
func (h *health) note(job claimed, o outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.news[job.lane]
	switch {
	case o.Delivered:
		n = news{succeeded: true}
	case n.failing == nil:
		n.failing = &o.At
	}
	if job.allowed > 1 && o.StatusCode == http.StatusGone {
		n.gone = true
	}
	h.news[job.lane] = n
}

// An endpoint that does as it did before is not written, and replicas take those that are
// in one order, so that none waits for another that waits for it. Only a failure that was just
// seen disables: one that nothing was sent to stays as it is. Whoever enables it again
// finds it with a clean slate.
const healthStatement = `
with seen as (
	select n.tenant_id, n.endpoint_id, n.failing is not null as fails, n.gone,
		case when n.succeeded then n.failing else coalesce(p.failing_since, n.failing) end as failing_since
	from unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::timestamptz[], $5::boolean[])
		as n (tenant_id, endpoint_id, succeeded, failing, gone)
	join endpoints p on p.tenant_id = n.tenant_id and p.endpoint_id = n.endpoint_id),
judged as (
	select *, case when gone then $8 when fails and failing_since < $6::timestamptz - $7::interval
		then $9 || to_char(failing_since at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') end as reason
	from seen),
changed as (
	select p.tenant_id, p.endpoint_id, judged.failing_since, judged.reason
	from judged join endpoints p on p.tenant_id = judged.tenant_id and p.endpoint_id = judged.endpoint_id
	where p.deleted_at is null and p.disabled_reason is null
		and (p.failing_since is distinct from judged.failing_since or judged.reason is not null)
	order by p.tenant_id, p.endpoint_id
	for no key update of p)
update endpoints p set disabled_reason = changed.reason,
	failing_since = case when changed.reason is null then changed.failing_since end
from changed
where p.tenant_id = changed.tenant_id and p.endpoint_id = changed.endpoint_id
returning p.tenant_id, p.endpoint_id, changed.reason`

// judged is an endpoint that was written to; with a reason it is disabled now.
type judged struct {
	lane
	reason *string
}

// save writes down what has been gathered: since when each endpoint fails, and that it is
// disabled once it has done nothing else for too long.
func (h *health) save(ctx context.Context, now time.Time) error {
	h.mu.Lock()
	gathered := h.news
	h.news = map[lane]news{}
	h.mu.Unlock()
	if len(gathered) == 0 {
		return nil
	}
	var (
		tenants, endpoints []uuid.UUID
		succeeded, gone    []bool
		failing            []*time.Time
	)
	for l, n := range gathered {
		tenants, endpoints = append(tenants, l.tenant), append(endpoints, l.endpoint)
		succeeded, failing, gone = append(succeeded, n.succeeded), append(failing, n.failing), append(gone, n.gone)
	}
	written, err := runPlanned(ctx, h.pool, func(row pgx.CollectableRow) (j judged, err error) {
		return j, row.Scan(&j.tenant, &j.endpoint, &j.reason)
	}, healthStatement, tenants, endpoints, succeeded, failing, gone, now, failsFor, reasonGone, reasonFailing)
	if err != nil {
		h.takeBack(gathered)
		return fmt.Errorf("save the health of endpoints: %w", err)
	}
	for _, j := range written {
		if j.reason != nil {
			h.log.Warn("webhook endpoint disabled", zap.Stringer("tenant_id", j.tenant),
				zap.Stringer("endpoint_id", j.endpoint), zap.String("reason", *j.reason))
		}
	}
	return nil
}

// takeBack adds what could not be written to what has been seen since.
func (h *health) takeBack(gathered map[lane]news) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l, earlier := range gathered {
		h.news[l] = h.news[l].after(earlier)
	}
}
