package commissions

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
)

// earnFromConversions books the commission of each conversion that has one, with the id
// and the amount that the event carries. It is a fixed amount, and never held back.
func (s *Service) earnFromConversions(ctx context.Context, tx *postgres.Tx, conversions []event.Event[event.ConversionRecorded]) error {
	var earnings []earning
	for _, conversion := range conversions {
		if err := checkConversion(conversion.Data); err != nil {
			return err
		}
		if conversion.Data.CommissionID == nil {
			continue
		}
		c := commissionOfConversion(conversion)
		told, err := s.tellAvailable(conversion.TenantID, c, conversion.Traceparent)
		if err != nil {
			return err
		}
		earnings = append(earnings, earning{c, conversion.TenantID, told})
	}
	return s.earn(ctx, tx, earnings)
}

// checkConversion tells what of a conversion cannot be.
func checkConversion(c event.ConversionRecorded) error {
	ids := []uuid.UUID{c.ConversionID, c.PartnerID, c.CampaignID}
	if c.CommissionID != nil {
		ids = append(ids, *c.CommissionID)
	}
	switch {
	case slices.Contains(ids, uuid.Nil):
		return invalid("an id is missing")
	case (c.CommissionID == nil) != (c.CommissionAmount == nil):
		return invalid("of commission_id and commission_amount_brl only one has a value")
	case c.CommissionAmount != nil && *c.CommissionAmount < 0:
		return invalid("commission_amount_brl %s is below 0", *c.CommissionAmount)
	}
	return nil
}

func commissionOfConversion(conversion event.Event[event.ConversionRecorded]) commission {
	d := conversion.Data
	earnedAt := openapi.Time{Time: event.Instant(conversion.CreatedAt)}
	return commission{
		ID: *d.CommissionID, PartnerID: d.PartnerID, CampaignID: &d.CampaignID, PlanID: d.PlanID, Kind: kindConversion,
		SourceConversionID: &d.ConversionID, Amount: *d.CommissionAmount, Status: statusAvailable, AvailableAt: earnedAt, CreatedAt: earnedAt,
	}
}
