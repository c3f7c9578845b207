package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// NewPartner is a partner who is to join.
type NewPartner struct {
	Name         string `json:"name"`
	ReferralCode string `json:"referral_code"` // 1 to 64 of A-Z a-z 0-9 . _ -, unique, never changed
	Email        string `json:"email,omitzero"`
	Status       string `json:"status,omitzero"`       // pending, active, suspended or banned; "" is active
	ExternalRef  string `json:"external_ref,omitzero"` // "": a lost call is not repeated
}

// Partner is somebody who sells.
type Partner struct {
	PartnerID    uuid.UUID `json:"partner_id"`
	ReferralCode string    `json:"referral_code"`
	Name         string    `json:"name"`
	Email        *string   `json:"email"`
	Status       string    `json:"status"` // only active sells
	CreatedAt    time.Time `json:"created_at"`
}

// CreatedPartner is the answer to a creation, or to a repeat of one.
type CreatedPartner struct {
	Partner
	Repeat
}

const partnersPath = "/api/v1/partners"

// CreatePartner lets a partner join. A referral code that is taken is a 409 conflict.
func (c *Client) CreatePartner(ctx context.Context, partner NewPartner) (CreatedPartner, error) {
	return send[CreatedPartner](ctx, c, call{
		what: "create partner", method: http.MethodPost, path: partnersPath, body: partner, repeatable: partner.ExternalRef != "",
	})
}

// GetPartner reads one partner.
func (c *Client) GetPartner(ctx context.Context, partnerID uuid.UUID) (Partner, error) {
	return read[Partner](ctx, c, "read partner", partnersPath+"/"+partnerID.String())
}

// PartnerUpdate is what is to change of a partner. A zero member stays as it is.
type PartnerUpdate struct {
	Name   string           `json:"name,omitzero"`
	Email  Nullable[string] `json:"email,omitzero"`
	Status string           `json:"status,omitzero"`
}

// UpdatePartner changes a partner and answers what it is like then. A status that the
// partner cannot get from the present one is a 409 invalid_transition.
func (c *Client) UpdatePartner(ctx context.Context, partnerID uuid.UUID, update PartnerUpdate) (Partner, error) {
	return send[Partner](ctx, c, call{
		what: "update partner", method: http.MethodPatch, path: partnersPath + "/" + partnerID.String(), body: update,
	})
}

// PartnerFilter narrows a list of partners. A zero member narrows nothing.
type PartnerFilter struct {
	ReferralCode string
	Email        string
	Status       string
}

// ListPartners yields the partners that the filter lets through, the last one first.
func (c *Client) ListPartners(ctx context.Context, f PartnerFilter) iter.Seq2[Partner, error] {
	return list[Partner](ctx, c, "list partners", partnersPath,
		filter{}.text("referral_code", f.ReferralCode).text("email", f.Email).text("status", f.Status))
}
