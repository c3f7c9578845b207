package goals

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

// metric is what a goal counts.
type metric string

const (
	salesCount       metric = "sales_count"       // sales that have not been refunded wholly
	salesAmount      metric = "sales_amount"      // what was sold, less what was refunded
	commissionAmount metric = "commission_amount" // what sales and conversions earned, less what refunds took back
	conversionsCount metric = "conversions_count"
)

// isAmount tells whether the metric's unit is the centavo.
func (m metric) isAmount() bool { return m == salesAmount || m == commissionAmount }

// quantity is value, in the metric's unit, as the wire shows it.
func (m metric) quantity(value int64) event.Quantity {
	return event.Quantity{Value: value, IsAmount: m.isAmount()}
}

// worth is what the fact adds to the metric.
func (m metric) worth(f fact) int64 {
	switch m {
	case salesCount:
		return int64(f.sales)
	case salesAmount:
		return f.amount.Centavos()
	case commissionAmount:
		return f.commission.Centavos()
	default:
		return int64(f.conversions)
	}
}

const (
	active   = "active"
	archived = "archived"
)

// goal is one target of one tenant.
type goal struct {
	tenantID    uuid.UUID
	id          uuid.UUID
	name        string
	metric      metric
	target      int64 // in the metric's unit: sales, conversions, or centavos
	period      period
	campaignID  *uuid.UUID  // nil: every campaign
	partnerIDs  []uuid.UUID // nil: every partner
	timezone    string      // a name that zoneOf knows
	startsAt    time.Time
	endsAt      *time.Time // nil: never
	reward      *money.BRL
	status      string
	externalRef *string
	createdAt   time.Time

	origin     time.Time // startsAt as it was made
	restedFrom *int64    // the last recording that it has counted; nil: it counts
	past       *backfill // nil: nothing of its past is left to do
	settled    bool      // its totals are complete
}

// backfill is how much of the past has been counted.
type backfill struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`

	rough bool // there may be more than Total: nobody has counted them to the end
}

// goalKey names a goal of any tenant.
type goalKey struct{ tenantID, goalID uuid.UUID }

const goalColumns = `tenant_id, goal_id, name, metric, target, period, campaign_id, partner_ids, timezone,
	starts_at, ends_at, reward_centavos, status, external_ref, created_at, origin, rested_from, past_done, past_total, settled, past_rough`

// scanGoal reads a row of goalColumns.
func scanGoal(row pgx.CollectableRow) (g goal, err error) {
	var done, total *int64
	var rough bool
	err = row.Scan(&g.tenantID, &g.id, &g.name, &g.metric, &g.target, &g.period, &g.campaignID, &g.partnerIDs, &g.timezone,
		&g.startsAt, &g.endsAt, &g.reward, &g.status, &g.externalRef, &g.createdAt, &g.origin, &g.restedFrom, &done, &total, &g.settled, &rough)
	if err == nil && total != nil {
		g.past = &backfill{Done: *done, Total: *total, rough: rough}
	}
	return g, err
}

// window is the time in which what happens counts for the goal.
func (g *goal) window() window { return window{g.startsAt, g.endsAt} }

// overBefore tells whether nothing that happens in the span after moment can count.
func (g *goal) overBefore(moment time.Time, in span) bool {
	over := func(end *time.Time) bool { return end != nil && !end.After(moment) }
	return over(in.end) || over(g.endsAt)
}

// goalBody is a goal as it is answered.
type goalBody struct {
	GoalID     uuid.UUID      `json:"goal_id"`
	Name       string         `json:"name"`
	Metric     metric         `json:"metric"`
	Target     event.Quantity `json:"target"`
	Period     period         `json:"period"`
	CampaignID *uuid.UUID     `json:"campaign_id"`
	PartnerIDs *[]uuid.UUID   `json:"partner_ids"`
	Timezone   string         `json:"timezone"`
	StartsAt   time.Time      `json:"starts_at"`
	EndsAt     *time.Time     `json:"ends_at"`
	Reward     *money.BRL     `json:"reward_brl"`
	Status     string         `json:"status"`
	Backfill   *backfill      `json:"backfill"`
	CreatedAt  time.Time      `json:"created_at"`
	Idempotent *bool          `json:"idempotent,omitzero"` // only after a create with an external_ref
}

func (g *goal) body() goalBody {
	body := goalBody{
		GoalID: g.id, Name: g.name, Metric: g.metric, Target: g.metric.quantity(g.target), Period: g.period,
		CampaignID: g.campaignID, Timezone: g.timezone, StartsAt: g.startsAt, EndsAt: g.endsAt,
		Reward: g.reward, Status: g.status, Backfill: g.past, CreatedAt: g.createdAt,
	}
	if g.partnerIDs != nil {
		body.PartnerIDs = &g.partnerIDs
	}
	return body
}
