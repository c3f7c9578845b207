package goals

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
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
	body, repeated, err := s.create(call.Context(), wanted)
	if err != nil {
		return web.Answer{}, err
	}
	answer := web.Answer{Status: http.StatusCreated}
	if repeated {
		answer.Status = http.StatusOK
		answer.Header = mismatchHeader(request, wanted.body(), body)
	}
	if request.ExternalRef != nil {
		body.Idempotent = &repeated
	}
	answer.Body = body
	return answer, nil
}

// hundredth is how many units of goalRequest.Target one sale or conversion is.
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
		campaignID: r.CampaignID, partnerIDs: r.PartnerIDs, timezone: defaultZone,
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
	if !g.metric.isAmount() {
		if g.target%hundredth != 0 {
			issues = append(issues, fault.Detail{Path: "/target", Code: "too_many_decimals", Message: "must be a whole number, since it is a count"})
		}
		g.target /= hundredth
	}
	places := make(map[uuid.UUID]int, len(g.partnerIDs))
	for i, partner := range g.partnerIDs { // the schema takes two spellings for two partners
		if first, twice := places[partner]; twice {
			issues = append(issues, fault.Detail{Path: fmt.Sprintf("/partner_ids/%d", i), Code: "not_allowed", Message: fmt.Sprintf("repeats item %d", first)})
			continue
		}
		places[partner] = i
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
	case g.period == total:
		g.startsAt = now
	default:
		g.startsAt = g.period.spanOf(now, zone).start
	}
	g.origin = g.startsAt
	return g, nil
}

var endsTooEarly = fault.Detail{Path: "/ends_at", Code: "too_small", Message: "must be later than starts_at"}

// create stores the goal and has the past of its window counted. Where its external_ref
// is known it makes nothing and returns what the first call was answered. Its error is a
// rule_violated where the tenant has as many active goals as it may have.
func (s *Service) create(ctx context.Context, wanted *goal) (body goalBody, repeated bool, err error) {
	err = s.alone(ctx, wanted.tenantID, func(tx *postgres.Tx) error {
		body, repeated, err = findFirst(ctx, tx, wanted)
		if err != nil || repeated {
			return err
		}
		// Only now: a repeat may come after the end of a goal that began when it was made.
		if wanted.endsAt != nil && !wanted.endsAt.After(wanted.startsAt) {
			return fault.InvalidBody(endsTooEarly)
		}
		past, err := countPast(ctx, tx, wanted.tenantID, s.inCall()+1, wanted.window()) // before anybody waits
		if err != nil {
			return err
		}
		if err := holdTenant(ctx, tx, wanted.tenantID); err != nil {
			return err
		}
		wanted.past = &backfill{Total: past, rough: past > s.inCall()}
		inserted, err := insertGoal(ctx, tx, wanted)
		if err != nil {
			return err
		}
		if !inserted { // another call with this external_ref was quicker
			body, repeated, err = findFirst(ctx, tx, wanted)
			return err
		}
		if err := s.limitActive(ctx, tx, wanted.tenantID); err != nil {
			return err
		}
		recorded, err := mark(ctx, tx)
		if err != nil {
			return err
		}
		if err := addStretches(ctx, tx, wanted, stretchesOf(1, 0, recorded, wanted.window())); err != nil {
			return err
		}
		if err := s.begin(ctx, tx, wanted); err != nil {
			return err
		}
		body = wanted.body()
		return keepFirst(ctx, tx, wanted, body)
	})
	return body, repeated, err
}

const insertGoalStatement = `
insert into goals (` + goalColumns + `, first)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, null, 0, $17, false, $18,
	case when $14::text is not null then ''::bytea end)
on conflict (tenant_id, external_ref) where external_ref is not null do nothing`

// insertGoal stores the goal and tells whether it did: not where the external_ref is
// taken. What the call is answered is stored last, by keepFirst.
func insertGoal(ctx context.Context, tx *postgres.Tx, g *goal) (bool, error) {
	tag, err := tx.Exec(ctx, insertGoalStatement, g.tenantID, g.id, g.name, g.metric, g.target, g.period, g.campaignID, g.partnerIDs,
		g.timezone, g.startsAt, g.endsAt, g.reward, g.status, g.externalRef, g.createdAt, g.origin, g.past.Total, g.past.rough)
	if err != nil {
		return false, fmt.Errorf("insert goal: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}
