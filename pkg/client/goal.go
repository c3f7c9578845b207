package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

// NewGoal is a goal that is to be set.
type NewGoal struct {
	Name        string         `json:"name"`
	Metric      string         `json:"metric"`                // sales_count, sales_amount, and what else the goals service can count
	Target      event.Quantity `json:"target"`                // a count, or centavos with IsAmount
	Period      string         `json:"period,omitzero"`       // total, month, and what else the goals service knows; "" is total
	CampaignID  uuid.UUID      `json:"campaign_id,omitzero"`  // zero: of every campaign
	PartnerIDs  []uuid.UUID    `json:"partner_ids,omitempty"` // none: for every partner
	Timezone    string         `json:"timezone,omitzero"`     // an IANA name; "" is America/Sao_Paulo
	StartsAt    time.Time      `json:"starts_at,omitzero"`
	EndsAt      time.Time      `json:"ends_at,omitzero"` // zero: never
	Reward      money.BRL      `json:"reward_brl,omitzero"`
	ExternalRef string         `json:"external_ref,omitzero"` // "": a lost call is not repeated
}

// Goal is something for partners to reach.
type Goal struct {
	GoalID     uuid.UUID      `json:"goal_id"`
	Name       string         `json:"name"`
	Metric     string         `json:"metric"`
	Target     event.Quantity `json:"target"`
	Period     string         `json:"period"`
	CampaignID *uuid.UUID     `json:"campaign_id"` // nil: of every campaign
	PartnerIDs []uuid.UUID    `json:"partner_ids"` // nil: for every partner
	Timezone   string         `json:"timezone"`
	StartsAt   time.Time      `json:"starts_at"`
	EndsAt     *time.Time     `json:"ends_at"` // nil: never
	Reward     *money.BRL     `json:"reward_brl"`
	Status     string         `json:"status"`
	CreatedAt  time.Time      `json:"created_at"`
}

// CreatedGoal is the answer to a creation, or to a repeat of one.
type CreatedGoal struct {
	Goal
	Repeat
}

const goalsPath = "/api/v1/goals"

// CreateGoal sets a goal.
func (c *Client) CreateGoal(ctx context.Context, goal NewGoal) (CreatedGoal, error) {
	return send[CreatedGoal](ctx, c, call{
		what: "create goal", method: http.MethodPost, path: goalsPath, body: goal, repeatable: goal.ExternalRef != "",
	})
}

// GetGoal reads one goal.
func (c *Client) GetGoal(ctx context.Context, goalID uuid.UUID) (Goal, error) {
	return read[Goal](ctx, c, "read goal", goalsPath+"/"+goalID.String())
}

// ListGoals yields all goals, the last one first.
func (c *Client) ListGoals(ctx context.Context) iter.Seq2[Goal, error] {
	return list[Goal](ctx, c, "list goals", goalsPath, filter{})
}

// Progress is how far one partner has come towards a goal in one period.
type Progress struct {
	GoalID      uuid.UUID      `json:"goal_id"`
	PartnerID   uuid.UUID      `json:"partner_id"`
	PeriodStart time.Time      `json:"period_start"`
	PeriodEnd   *time.Time     `json:"period_end"` // nil: the period has no end
	Progress    event.Quantity `json:"progress"`
	Target      event.Quantity `json:"target"`
	Percent     money.Pct      `json:"percent"`
	Reached     bool           `json:"reached"`
	ReachedAt   *time.Time     `json:"reached_at"`
	Rank        int            `json:"rank"` // who are level share one
}

// ProgressFilter narrows a leaderboard. A zero member narrows nothing.
type ProgressFilter struct {
	PartnerID   uuid.UUID
	PeriodStart time.Time // zero: the present period
}

// ListGoalProgress yields the leaderboard of a goal in one period, the best first.
func (c *Client) ListGoalProgress(ctx context.Context, goalID uuid.UUID, f ProgressFilter) iter.Seq2[Progress, error] {
	return list[Progress](ctx, c, "list progress of goal", goalsPath+"/"+goalID.String()+"/progress",
		filter{}.id("partner_id", f.PartnerID).time("period_start", f.PeriodStart))
}
