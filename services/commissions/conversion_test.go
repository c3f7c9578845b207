package commissions

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

func TestAConversionEarnsTheAmountThatItsEventCarriesAtOnce(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	c := conversion(tenant, f.now.Add(-time.Minute), 4_75)
	c.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if err := handle(f, f.earnFromConversions, c); err != nil {
		t.Fatal(err)
	}
	d := c.Data
	got, err := f.commission(t.Context(), tenant, *d.CommissionID)
	if err != nil {
		t.Fatal(err)
	}
	if got.PartnerID != d.PartnerID || got.Kind != "conversion" || *got.CampaignID != d.CampaignID || *got.PlanID != *d.PlanID ||
		*got.SourceConversionID != d.ConversionID || got.SourceSaleID != nil || got.SourceGoalID != nil || got.BaseAmount != nil || got.Pct != nil ||
		got.Amount != 4_75 || got.Status != "available" || !got.AvailableAt.Equal(c.CreatedAt) || !got.CreatedAt.Equal(c.CreatedAt) {
		t.Errorf("commission %+v", got)
	}
	if got := f.books(tenant, d.PartnerID); got != (balances{Available: 4_75}) {
		t.Errorf("balances %+v", got)
	}
	told := only[event.CommissionAvailable](f)
	if told.Data.CommissionID != *d.CommissionID || told.Data.Amount != 4_75 || told.Data.SourceSaleID != nil || *told.Data.SourceConversionID != d.ConversionID ||
		told.Data.CampaignID != d.CampaignID || told.Data.Kind != "conversion" || told.Data.Status != "available" || told.Traceparent != c.Traceparent {
		t.Errorf("told %+v", told)
	}
	f.balanced(tenant)
}

func TestAConversionWithoutACommissionChangesNothing(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	before := f.state()
	if err := handle(f, f.earnFromConversions, conversion(newID(), f.now, 0)); err != nil {
		t.Error(err)
	}
	same(t, before, f.state())
}

func TestAConversionThatCannotBeIsRefusedWhole(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	first := conversion(tenant, f.now, 4_75)
	if err := handle(f, f.earnFromConversions, first); err != nil {
		t.Fatal(err)
	}
	before := f.state()
	for name, row := range map[string]struct {
		change func(*event.ConversionRecorded)
		kind   fault.Kind
	}{
		"no conversion_id":       {func(c *event.ConversionRecorded) { c.ConversionID = uuid.Nil }, fault.Invalid},
		"no partner_id":          {func(c *event.ConversionRecorded) { c.PartnerID = uuid.Nil }, fault.Invalid},
		"no campaign_id":         {func(c *event.ConversionRecorded) { c.CampaignID = uuid.Nil }, fault.Invalid},
		"an empty commission_id": {func(c *event.ConversionRecorded) { c.CommissionID = new(uuid.Nil) }, fault.Invalid},
		"an amount without id":   {func(c *event.ConversionRecorded) { c.CommissionID = nil }, fault.Invalid},
		"an id without amount":   {func(c *event.ConversionRecorded) { c.CommissionAmount = nil }, fault.Invalid},
		"less than nothing":      {func(c *event.ConversionRecorded) { c.CommissionAmount = new(money.BRL(-1)) }, fault.Invalid},
		"a conversion that paid": {func(c *event.ConversionRecorded) { c.ConversionID = first.Data.ConversionID }, fault.Conflict},
		"a commission id taken":  {func(c *event.ConversionRecorded) { c.CommissionID = first.Data.CommissionID }, fault.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := conversion(tenant, f.now, 4_75)
			row.change(&wrong.Data)
			if err := handle(f, f.earnFromConversions, conversion(tenant, f.now, 1_00), wrong); fault.KindOf(err) != row.kind {
				t.Errorf("refused as %v", err)
			}
			same(t, before, f.state())
		})
	}
}
