package goals

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
)

// goalRequest is the body of a create.
type goalRequest struct {
	Name        string        `json:"name"`
	Metric      metric        `json:"metric"`
	Target      money.BRL     `json:"target"` // hundredths, also of a count
	Period      *period       `json:"period"`
	CampaignID  *uuid.UUID    `json:"campaign_id"`
	PartnerIDs  []uuid.UUID   `json:"partner_ids"`
	Timezone    *string       `json:"timezone"`
	StartsAt    *openapi.Time `json:"starts_at"`
	EndsAt      *openapi.Time `json:"ends_at"`
	Reward      *money.BRL    `json:"reward_brl"`
	ExternalRef *string       `json:"external_ref"`
}

func (s *Service) createGoal(call *web.Call) (web.Answer, error) {
	var request goalRequest
	if err := call.Decode(&request); err != nil {
		return web.Answer{}, err
	}
	wanted, err := request.goal(call.Tenant(), event.Instant(s.deps.Now()))
	if err != nil {
		return web.Answer{}, err
	}
	made, repeated, err := s.create(call.Context(), wanted)
	if err != nil {
		return web.Answer{}, err
	}
	answer := web.Answer{Status: http.StatusCreated}
	if repeated {
		answer.Status = http.StatusOK
		answer.Header = mismatchHeader(request, wanted, made)
	}
	body := made.body()
	if made.externalRef != nil {
		body.Idempotent = &repeated
	}
	answer.Body = body
	return answer, nil
}

// hundredth is how many units of goalRequest.Target one sale is.
const hundredth = 100

// goal is what the request asks for, made at the instant now, with every default
// filled in. Its error is an invalid_body that names every issue which the schema
// cannot see.
func (r goalRequest) goal(tenant uuid.UUID, now time.Time) (*goal, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make goal id: %w", err)
	}
	g := &goal{
		tenantID: tenant, id: id, name: r.Name, metric: r.Metric, target: r.Target.Centavos(), period: total,
		campaignID: r.CampaignID, partnerIDs: distinct(r.PartnerIDs), timezone: defaultZone,
		reward: r.Reward, status: active, externalRef: r.ExternalRef, createdAt: now,
	}
	if r.Period != nil {
		g.period = *r.Period
	}
	if r.EndsAt != nil {
		g.endsAt = &r.EndsAt.Time
	}
	if r.Timezone != nil {
		g.timezone = *r.Timezone
	}

	var issues []fault.Detail
	if r.StartsAt != nil && r.EndsAt != nil && !r.EndsAt.After(r.StartsAt.Time) {
		issues = append(issues, endsTooEarly)
	}
	if g.metric == salesCount {
		if g.target%hundredth != 0 {
			issues = append(issues, fault.Detail{Path: "/target", Code: "too_many_decimals", Message: "must be a whole number of sales"})
		}
		g.target /= hundredth
	}
	zone, err := zoneOf(g.timezone)
	if err != nil {
		issues = append(issues, fault.Detail{Path: "/timezone", Code: "not_allowed", Message: "must be the IANA name of a time zone, such as America/Sao_Paulo"})
	}
	if len(issues) > 0 {
		return nil, fault.InvalidBody(issues...)
	}

	switch {
	case r.StartsAt != nil:
		g.startsAt = r.StartsAt.Time
	case g.period == month:
		g.startsAt = monthOf(now, zone).start
	default:
		g.startsAt = now
	}
	return g, nil
}

var endsTooEarly = fault.Detail{Path: "/ends_at", Code: "too_small", Message: "must be later than starts_at"}

// distinct returns the ids in their order, each once: two spellings of one id look
// different to the schema.
func distinct(ids []uuid.UUID) []uuid.UUID {
	seen := make(map[uuid.UUID]bool, len(ids))
	var kept []uuid.UUID
	for _, id := range ids {
		if !seen[id] {
			seen[id], kept = true, append(kept, id)
		}
	}
	return kept
}

// create stores the goal and counts the past sales of its window, in one transaction.
// Where its external_ref is known it makes nothing and returns the goal that is.
//
// While it counts, no sale of the tenant is recorded; see lock.go.
func (s *Service) create(ctx context.Context, wanted *goal) (made *goal, repeated bool, err error) {
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		made, repeated = wanted, false
		first, err := findByRef(ctx, tx, wanted)
		if err != nil {
			return err
		}
		if first != nil {
			made, repeated = first, true
			return nil
		}
		// Only now: a repeat may come after the end of a goal that began when it was made.
		if wanted.endsAt != nil && !wanted.endsAt.After(wanted.startsAt) {
			return fault.InvalidBody(endsTooEarly)
		}
		if err := holdTenant(ctx, tx, wanted.tenantID); err != nil {
			return err
		}
		inserted, err := insertGoal(ctx, tx, wanted)
		if err != nil {
			return err
		}
		if !inserted { // another call with this external_ref was quicker
			made, err = findByRef(ctx, tx, wanted)
			repeated = true
			return err
		}
		arrivals, err := fill(ctx, tx, wanted, trace.Parent(ctx))
		if err != nil {
			return err
		}
		return s.reach(ctx, tx, arrivals)
	})
	return made, repeated, err
}

const findByRefQuery = `
select ` + goalColumns + ` from goals where tenant_id = $1 and external_ref = $2`

// findByRef returns the goal that was made with the same external_ref, or nil.
func findByRef(ctx context.Context, tx *postgres.Tx, wanted *goal) (*goal, error) {
	if wanted.externalRef == nil {
		return nil, nil
	}
	rows, err := tx.Query(ctx, findByRefQuery, wanted.tenantID, *wanted.externalRef)
	if err != nil {
		return nil, fmt.Errorf("find goal by external_ref: %w", err)
	}
	first, err := pgx.CollectExactlyOneRow(rows, scanGoal)
	switch {
	case postgres.Absent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find goal by external_ref: %w", err)
	default:
		return &first, nil
	}
}

const insertGoalStatement = `
insert into goals (` + goalColumns + `)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict (tenant_id, external_ref) where external_ref is not null do nothing`

// insertGoal stores the goal and tells whether it did: not where the external_ref is
// taken.
func insertGoal(ctx context.Context, tx *postgres.Tx, g *goal) (bool, error) {
	tag, err := tx.Exec(ctx, insertGoalStatement, g.tenantID, g.id, g.name, g.metric, g.target, g.period, g.campaignID, g.partnerIDs,
		g.timezone, g.startsAt, g.endsAt, g.reward, g.status, g.externalRef, g.createdAt)
	if err != nil {
		return false, fmt.Errorf("insert goal: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}
