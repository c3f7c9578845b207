package sales

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// campaign is what is being sold, and between which moments.
type campaign struct {
	CampaignID uuid.UUID  `json:"campaign_id"`
	Name       string     `json:"name"`
	Status     string     `json:"status"`    // only active sells
	StartsAt   *time.Time `json:"starts_at"` // null: no bound
	EndsAt     *time.Time `json:"ends_at"`   // null: no bound
	CreatedAt  time.Time  `json:"created_at"`
}

var campaignTransitions = transitions{
	"draft":  {"active"},
	"active": {"paused", "ended"},
	"paused": {"active", "ended"},
}

// checkDates wants the end after the start.
func (c campaign) checkDates() error {
	if c.StartsAt != nil && c.EndsAt != nil && !c.EndsAt.After(*c.StartsAt) {
		return fault.InvalidBody(fault.Detail{Path: "/ends_at", Code: "too_small", Message: "must be later than starts_at"})
	}
	return nil
}

const createCampaignStatement = `
insert into campaigns (tenant_id, campaign_id, name, status, starts_at, ends_at, external_ref, first, created_at)
values (@tenant_id, @campaign_id, @name, @status, @starts_at, @ends_at, @external_ref, @first, @created_at)
on conflict do nothing`

const firstCampaignQuery = `select first from campaigns where tenant_id = @tenant_id and external_ref = @external_ref`

type campaignBody struct {
	Name        string        `json:"name"`
	Status      *string       `json:"status"`
	StartsAt    *openapi.Time `json:"starts_at"`
	EndsAt      *openapi.Time `json:"ends_at"`
	ExternalRef *string       `json:"external_ref"`
}

// createCampaign answers POST /api/v1/campaigns.
func (s *Service) createCampaign(call *web.Call) (web.Answer, error) {
	var body campaignBody
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	creation, err := s.newCampaign(call.Tenant(), body)
	if err != nil {
		return web.Answer{}, err
	}
	return create(call.Context(), s, creation)
}

// newCampaign prepares a campaign; its dates may still be refused.
func (s *Service) newCampaign(tenant uuid.UUID, body campaignBody) (creation[campaign], error) {
	id, err := uuid.NewV7()
	if err != nil {
		return creation[campaign]{}, err
	}
	c := campaign{
		CampaignID: id, Name: body.Name, Status: orElse(body.Status, "active"),
		StartsAt: instant(body.StartsAt), EndsAt: instant(body.EndsAt), CreatedAt: event.Instant(s.deps.Now()),
	}
	return creation[campaign]{
		tenant: tenant, externalRef: body.ExternalRef, view: c, own: "campaign_id", taken: "external_ref",
		firstQuery: firstCampaignQuery,
		insert: func(ctx context.Context, tx *postgres.Tx, first []byte) (bool, error) {
			tag, err := tx.Exec(ctx, createCampaignStatement, pgx.NamedArgs{
				"tenant_id": tenant, "campaign_id": c.CampaignID, "name": c.Name, "status": c.Status,
				"starts_at": c.StartsAt, "ends_at": c.EndsAt, "external_ref": body.ExternalRef, "first": first, "created_at": c.CreatedAt,
			})
			return tag.RowsAffected() == 1, err
		},
	}, c.checkDates()
}

const campaignColumns = `campaign_id, name, status, starts_at, ends_at, created_at`

func scanCampaign(row pgx.CollectableRow) (c campaign, err error) {
	return c, row.Scan(&c.CampaignID, &c.Name, &c.Status, &c.StartsAt, &c.EndsAt, &c.CreatedAt)
}

const listCampaignsQuery = `
select ` + campaignColumns + ` from campaigns
where tenant_id = @tenant_id and (@after::uuid is null or campaign_id < @after)
order by campaign_id desc limit @limit`

// listCampaigns answers GET /api/v1/campaigns.
func (s *Service) listCampaigns(call *web.Call) (web.Answer, error) {
	return list(s, call, scanCampaign, func(c campaign) uuid.UUID { return c.CampaignID }, listCampaignsQuery, pgx.NamedArgs{})
}

const getCampaignQuery = `select ` + campaignColumns + ` from campaigns where tenant_id = $1 and campaign_id = $2`

// getCampaign answers GET /api/v1/campaigns/{campaign_id}.
func (s *Service) getCampaign(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("campaign_id")
	if err != nil {
		return web.Answer{}, err
	}
	return getOne(s, call, scanCampaign, getCampaignQuery, call.Tenant(), id)
}

const changeCampaignStatement = `
update campaigns set name = @name, status = @status, starts_at = @starts_at, ends_at = @ends_at
where tenant_id = @tenant_id and campaign_id = @campaign_id`

// changeCampaign answers PATCH /api/v1/campaigns/{campaign_id}.
func (s *Service) changeCampaign(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("campaign_id")
	if err != nil {
		return web.Answer{}, err
	}
	var body struct {
		Name     *string                        `json:"name"`
		Status   *string                        `json:"status"`
		StartsAt openapi.Optional[openapi.Time] `json:"starts_at"`
		EndsAt   openapi.Optional[openapi.Time] `json:"ends_at"`
	}
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	return amend(s, call, id, getCampaignQuery, scanCampaign, func(tx *postgres.Tx, c *campaign) error {
		if err := campaignTransitions.check(c.Status, orElse(body.Status, c.Status)); err != nil {
			return err
		}
		c.Name, c.Status = orElse(body.Name, c.Name), orElse(body.Status, c.Status)
		if body.StartsAt.Sent {
			c.StartsAt = instant(body.StartsAt.Value)
		}
		if body.EndsAt.Sent {
			c.EndsAt = instant(body.EndsAt.Value)
		}
		if err := c.checkDates(); err != nil {
			return err
		}
		_, err = tx.Exec(call.Context(), changeCampaignStatement, pgx.NamedArgs{
			"tenant_id": call.Tenant(), "campaign_id": id, "name": c.Name, "status": c.Status, "starts_at": c.StartsAt, "ends_at": c.EndsAt,
		})
		return err
	})
}
