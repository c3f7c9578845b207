package webhooks

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partilha.dev/pkg/money"
)

// filter narrows what an endpoint hears of the events that it chose: each member that is
// set keeps events away that have the member and another value. An event that has no
// such member, or null there, passes.
type filter struct {
	PartnerIDs  []uuid.UUID `json:"partner_ids,omitzero"`
	CampaignIDs []uuid.UUID `json:"campaign_ids,omitzero"`
	MinAmount   *money.BRL  `json:"min_amount_brl,omitzero"`
}

// filterColumns are what filter.columns takes, in its order.
const filterColumns = `filter_partner_ids, filter_campaign_ids, filter_amount_centavos`

func (f *filter) columns() []any { return []any{&f.PartnerIDs, &f.CampaignIDs, &f.MinAmount} }

// whole is the filter, or nil where it keeps nothing away.
func (f filter) whole() *filter {
	if f.PartnerIDs == nil && f.CampaignIDs == nil && f.MinAmount == nil {
		return nil
	}
	return &f
}

// orNone is the filter that is given, or else the one that keeps nothing away.
func orNone(f *filter) filter {
	if f == nil {
		return filter{}
	}
	return *f
}

// traits are what a filter looks at in the data of an event.
type traits struct {
	partner, campaign *uuid.UUID
	amount            *money.BRL
}

// traitsOf reads the body of an event. A member that is absent, null or of another type
// is a trait that the event does not have.
func traitsOf(body []byte) (t traits) {
	var envelope struct {
		Data struct {
			PartnerID  jsontext.Value `json:"partner_id"`
			CampaignID jsontext.Value `json:"campaign_id"`
			Amount     jsontext.Value `json:"amount_brl"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return traits{}
	}
	t.partner, t.campaign = trait[uuid.UUID](envelope.Data.PartnerID), trait[uuid.UUID](envelope.Data.CampaignID)
	t.amount = trait[money.BRL](envelope.Data.Amount)
	return t
}

func trait[T any](member jsontext.Value) *T {
	var value *T
	if len(member) == 0 || json.Unmarshal(member, &value) != nil {
		return nil
	}
	return value
}

// admits tells whether the filter lets an event with these traits through.
func (f *filter) admits(t traits) bool {
	switch {
	case f.PartnerIDs != nil && t.partner != nil && !slices.Contains(f.PartnerIDs, *t.partner):
		return false
	case f.CampaignIDs != nil && t.campaign != nil && !slices.Contains(f.CampaignIDs, *t.campaign):
		return false
	case f.MinAmount != nil && t.amount != nil && *t.amount < *f.MinAmount:
		return false
	}
	return true
}
