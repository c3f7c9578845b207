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
	Metric      string         `json:"metric"`                // sales_count, sales_amount, commission_amount or conversions_count
	Target      event.Quantity `json:"target"`                // a count, or centavos with IsAmount
	Period      string         `json:"period,omitzero"`       // total, day, week, month, quarter or year; "" is total
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
	Status     string         `json:"status"`   // only active counts
	Backfill   *Backfill      `json:"backfill"` // nil: all of its past is counted
	CreatedAt  time.Time      `json:"created_at"`
}

// Backfill is how much of what happened before is counted for a goal that was made or
// changed. Nobody reaches the goal until all of it is.
type Backfill struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"` // as counted when it began
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

// GoalUpdate is what is to change of a goal. A zero member stays as it is.
type GoalUpdate struct {
	Name     string              `json:"name,omitzero"`
	Status   string              `json:"status,omitzero"` // active or archived
	StartsAt time.Time           `json:"starts_at,omitzero"`
	EndsAt   Nullable[time.Time] `json:"ends_at,omitzero"`
}

// UpdateGoal changes a goal and answers what it is like then. Its progress follows, in
// the background where that takes long.
func (c *Client) UpdateGoal(ctx context.Context, goalID uuid.UUID, update GoalUpdate) (Goal, error) {
	return send[Goal](ctx, c, call{what: "update goal", method: http.MethodPatch, path: goalsPath + "/" + goalID.String(), body: update})
}

// DeleteGoal removes a goal; one that somebody has reached is a 409 conflict.
func (c *Client) DeleteGoal(ctx context.Context, goalID uuid.UUID) error {
	_, err := send[nothing](ctx, c, call{what: "delete goal", method: http.MethodDelete, path: goalsPath + "/" + goalID.String()})
	return err
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
