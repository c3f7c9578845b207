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
	salesCount  metric = "sales_count"
	salesAmount metric = "sales_amount"
)

// quantity is value, in the metric's unit, as the wire shows it.
func (m metric) quantity(value int64) event.Quantity {
	return event.Quantity{Value: value, IsAmount: m == salesAmount}
}

// period is the span of time in which a goal is to be reached, again and again.
type period string

const (
	total period = "total" // once in all
	month period = "month" // a calendar month in the goal's time zone
)

const active = "active"

// goal is one target of one tenant. Once made it does not change.
type goal struct {
	tenantID    uuid.UUID
	id          uuid.UUID
	name        string
	metric      metric
	target      int64 // in the metric's unit: sales, or centavos
	period      period
	campaignID  *uuid.UUID  // nil: sales of every campaign
	partnerIDs  []uuid.UUID // nil: every partner
	timezone    string      // a name that zoneOf knows
	startsAt    time.Time
	endsAt      *time.Time // nil: never
	reward      *money.BRL
	status      string
	externalRef *string
	createdAt   time.Time
}

const goalColumns = `tenant_id, goal_id, name, metric, target, period, campaign_id, partner_ids, timezone,
	starts_at, ends_at, reward_centavos, status, external_ref, created_at`

// scanGoal reads a row of goalColumns.
func scanGoal(row pgx.CollectableRow) (g goal, err error) {
	err = row.Scan(&g.tenantID, &g.id, &g.name, &g.metric, &g.target, &g.period, &g.campaignID, &g.partnerIDs, &g.timezone,
		&g.startsAt, &g.endsAt, &g.reward, &g.status, &g.externalRef, &g.createdAt)
	return g, err
}

// worth is what one sale adds to the progress.
func (g *goal) worth(sale fact) int64 {
	if g.metric == salesAmount {
		return sale.amount.Centavos()
	}
	return 1
}

// overBefore tells whether nothing that was sold in the span after moment can count.
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
	CreatedAt  time.Time      `json:"created_at"`
	Idempotent *bool          `json:"idempotent,omitzero"` // only after a create with an external_ref
}

func (g *goal) body() goalBody {
	body := goalBody{
		GoalID: g.id, Name: g.name, Metric: g.metric, Target: g.metric.quantity(g.target), Period: g.period,
		CampaignID: g.campaignID, Timezone: g.timezone, StartsAt: g.startsAt, EndsAt: g.endsAt,
		Reward: g.reward, Status: g.status, CreatedAt: g.createdAt,
	}
	if g.partnerIDs != nil {
		body.PartnerIDs = &g.partnerIDs
	}
	return body
}
