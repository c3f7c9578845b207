package sales

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/money"
	"partilha.dev/pkg/web"
)

// conversion is something short of a sale that a partner brought about, as it is shown.
type conversion struct {
	ConversionID     uuid.UUID  `json:"conversion_id"`
	ExternalRef      string     `json:"external_ref"`
	Type             string     `json:"type"`
	PartnerID        uuid.UUID  `json:"partner_id"`
	ReferralCode     string     `json:"referral_code"` // as it was reported
	CampaignID       uuid.UUID  `json:"campaign_id"`
	PlanID           *uuid.UUID `json:"plan_id"` // null: none was named
	Value            *money.BRL `json:"value_brl"`
	OccurredAt       time.Time  `json:"occurred_at"`
	CustomerRef      *string    `json:"customer_ref"`
	Notes            *string    `json:"notes"`
	CommissionID     *uuid.UUID `json:"commission_id"` // null: it earned nothing
	CommissionAmount *money.BRL `json:"commission_amount_brl"`
	CreatedAt        time.Time  `json:"created_at"`

	erased bool // as that of a sale
}

// conversionTypes are what a conversion can be; the first is what it is unless it says.
var conversionTypes = []string{"lead", "signup", "trial", "custom"}

const conversionColumns = `
conversion_id, external_ref, type, partner_id, referral_code, campaign_id, plan_id, value_centavos, occurred_at, customer_ref, notes,
commission_id, commission_centavos, created_at, erased_at is not null as erased`

func scanConversion(row pgx.CollectableRow) (c conversion, err error) {
	return c, row.Scan(&c.ConversionID, &c.ExternalRef, &c.Type, &c.PartnerID, &c.ReferralCode, &c.CampaignID, &c.PlanID, &c.Value,
		&c.OccurredAt, &c.CustomerRef, &c.Notes, &c.CommissionID, &c.CommissionAmount, &c.CreatedAt, &c.erased)
}

const getConversionQuery = `select ` + conversionColumns + ` from conversions where tenant_id = $1 and conversion_id = $2`

// getConversion answers GET /api/v1/conversions/{conversion_id}.
func (s *Service) getConversion(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("conversion_id")
	if err != nil {
		return web.Answer{}, err
	}
	return getOne(s, call, scanConversion, getConversionQuery, call.Tenant(), id)
}

const listConversionsQuery = `
select ` + conversionColumns + ` from conversions
where tenant_id = @tenant_id and (@after::uuid is null or conversion_id < @after)
  and (@external_ref::text is null or external_ref = @external_ref)
  and (@partner_id::uuid is null or partner_id = @partner_id)
  and (@campaign_id::uuid is null or campaign_id = @campaign_id)
  and (@type::text is null or type = @type)
order by conversion_id desc limit @limit`

// listConversions answers GET /api/v1/conversions.
func (s *Service) listConversions(call *web.Call) (web.Answer, error) {
	ref, err := call.QueryText("external_ref", longestRef)
	if err != nil {
		return web.Answer{}, err
	}
	partner, err := call.QueryID("partner_id")
	if err != nil {
		return web.Answer{}, err
	}
	campaign, err := call.QueryID("campaign_id")
	if err != nil {
		return web.Answer{}, err
	}
	kind, err := call.QueryChoice("type", conversionTypes...)
	if err != nil {
		return web.Answer{}, err
	}
	filters := pgx.NamedArgs{"external_ref": ref, "partner_id": partner, "campaign_id": campaign, "type": kind}
	return list(s, call, scanConversion, func(c conversion) uuid.UUID { return c.ConversionID }, listConversionsQuery, filters)
}
