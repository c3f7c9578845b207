package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// NewCampaign is a campaign that is to begin.
type NewCampaign struct {
	Name        string    `json:"name"`
	Status      string    `json:"status,omitzero"`       // draft, active, paused or ended; "" is active
	StartsAt    time.Time `json:"starts_at,omitzero"`    // zero: no bound
	EndsAt      time.Time `json:"ends_at,omitzero"`      // zero: no bound
	ExternalRef string    `json:"external_ref,omitzero"` // "": a lost call is not repeated
}

// Campaign is what is being sold, and between which moments.
type Campaign struct {
	CampaignID uuid.UUID  `json:"campaign_id"`
	Name       string     `json:"name"`
	Status     string     `json:"status"`    // only active sells
	StartsAt   *time.Time `json:"starts_at"` // nil: no bound
	EndsAt     *time.Time `json:"ends_at"`   // nil: no bound
	CreatedAt  time.Time  `json:"created_at"`
}

// CreatedCampaign is the answer to a creation, or to a repeat of one.
type CreatedCampaign struct {
	Campaign
	Repeat
}

const campaignsPath = "/api/v1/campaigns"

// CreateCampaign begins a campaign.
func (c *Client) CreateCampaign(ctx context.Context, campaign NewCampaign) (CreatedCampaign, error) {
	return send[CreatedCampaign](ctx, c, call{
		what: "create campaign", method: http.MethodPost, path: campaignsPath, body: campaign, repeatable: campaign.ExternalRef != "",
	})
}

// GetCampaign reads one campaign.
func (c *Client) GetCampaign(ctx context.Context, campaignID uuid.UUID) (Campaign, error) {
	return read[Campaign](ctx, c, "read campaign", campaignPath(campaignID))
}

// CampaignUpdate is what is to change of a campaign. A zero member stays as it is.
type CampaignUpdate struct {
	Name     string              `json:"name,omitzero"`
	Status   string              `json:"status,omitzero"`
	StartsAt Nullable[time.Time] `json:"starts_at,omitzero"`
	EndsAt   Nullable[time.Time] `json:"ends_at,omitzero"`
}

// UpdateCampaign changes a campaign and answers what it is like then. A status that the
// campaign cannot get from the present one is a 409 invalid_transition.
func (c *Client) UpdateCampaign(ctx context.Context, campaignID uuid.UUID, update CampaignUpdate) (Campaign, error) {
	return send[Campaign](ctx, c, call{what: "update campaign", method: http.MethodPatch, path: campaignPath(campaignID), body: update})
}

// ListCampaigns yields all campaigns, the last one first.
func (c *Client) ListCampaigns(ctx context.Context) iter.Seq2[Campaign, error] {
	return list[Campaign](ctx, c, "list campaigns", campaignsPath, filter{})
}

func campaignPath(campaignID uuid.UUID) string { return campaignsPath + "/" + campaignID.String() }
