package webhooks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
)

func TestAFilterKeepsAwayWhatHasTheMemberAndAnotherValue(t *testing.T) {
	t.Parallel()
	a, b := uuid.MustParse(partnerA), uuid.MustParse(partnerB)
	least := money.BRL(100_00)
	for _, row := range []struct {
		filter filter
		data   string
		admits bool
	}{
		{filter{}, `{"partner_id":"` + partnerA + `","amount_brl":0.01}`, true},
		{filter{PartnerIDs: []uuid.UUID{a}}, `{"partner_id":"` + partnerA + `"}`, true},
		{filter{PartnerIDs: []uuid.UUID{a, b}}, `{"partner_id":"` + partnerB + `"}`, true},
		{filter{PartnerIDs: []uuid.UUID{a}}, `{"partner_id":"` + partnerB + `"}`, false},
		{filter{PartnerIDs: []uuid.UUID{a}}, `{"partner_id":null}`, true},
		{filter{PartnerIDs: []uuid.UUID{a}}, `{}`, true},
		{filter{PartnerIDs: []uuid.UUID{a}}, `{"partner_id":17}`, true},
		{filter{PartnerIDs: []uuid.UUID{a}}, `{"campaign_id":"` + partnerB + `"}`, true},
		{filter{CampaignIDs: []uuid.UUID{a}}, `{"campaign_id":"` + partnerA + `","partner_id":"` + partnerB + `"}`, true},
		{filter{CampaignIDs: []uuid.UUID{a}}, `{"campaign_id":"` + partnerB + `","partner_id":"` + partnerA + `"}`, false},
		{filter{CampaignIDs: []uuid.UUID{a}}, `{"campaign_id":null}`, true},
		{filter{MinAmount: &least}, `{"amount_brl":100}`, true},
		{filter{MinAmount: &least}, `{"amount_brl":99.99}`, false},
		{filter{MinAmount: &least}, `{"amount_brl":1E1000000000}`, true},
		{filter{MinAmount: &least}, `{"amount_brl":null,"value_brl":1.00}`, true},
		{filter{MinAmount: &least}, `{"commission_amount_brl":1.00}`, true},
		{filter{PartnerIDs: []uuid.UUID{a}, MinAmount: &least}, `{"partner_id":"` + partnerA + `","amount_brl":99.99}`, false},
		{filter{PartnerIDs: []uuid.UUID{a}, MinAmount: &least}, `{"partner_id":"` + partnerB + `","amount_brl":100.00}`, false},
		{filter{PartnerIDs: []uuid.UUID{a}, MinAmount: &least}, `{"partner_id":"` + partnerA + `","amount_brl":100.00}`, true},
	} {
		if got := row.filter.admits(traitsOf([]byte(`{"event":"x","data":` + row.data + `}`))); got != row.admits {
			t.Errorf("%+v admits %s: %t", row.filter, row.data, got)
		}
	}
}

func TestWhatAFilterKeepsAwayIsSkippedAndSaysSo(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.run(s.Run)
	register := func(path, filter string) string {
		t.Helper()
		var created wire
		k.ask(s, who, "POST", endpointsPath, fmt.Sprintf(`{"url":"%s/%s","events":["sale.recorded"],"filter":%s}`, in.URL, path, filter)).must(201, &created)
		return created.EndpointID
	}
	everything := register("everything", "null")
	ofPartner := register("partner", `{"partner_ids":["`+partnerA+`"]}`)
	ofCampaign := register("campaign", `{"campaign_ids":["`+partnerB+`"]}`)
	large := register("large", `{"min_amount_brl":100.01}`)

	sale := func(partner, campaign string, amount money.BRL) event.Sealed {
		return seal(t, who.tenant, uuid.New(), time.Now(), event.SaleRecorded{
			SaleID: uuid.New(), PartnerID: uuid.MustParse(partner), CampaignID: uuid.MustParse(campaign), Amount: amount, SoldAt: time.Now()})
	}
	one, two := sale(partnerA, partnerA, 100_00), sale(partnerB, partnerB, 100_01)
	k.fanOut(s, one, two, joined(t, who.tenant, time.Now())) // nobody chose the last
	testkit.Eventually(t, soon, "what passes is delivered", func() bool { return k.inState(stateDelivered) == 5 })
	before := k.dump()
	k.fanOut(s, two, one) // a repeat

	got := map[string]string{}
	for _, d := range k.deliveries(s, who, "") {
		got[d.EndpointID+" "+d.EventID] = d.Status
	}
	want := map[string]string{}
	for endpoint, heard := range map[string][]event.Sealed{everything: {one, two}, ofPartner: {one}, ofCampaign: {two}, large: {two}} {
		for _, e := range []event.Sealed{one, two} {
			want[endpoint+" "+e.ID.String()] = stateSkipped
			if slices.ContainsFunc(heard, func(h event.Sealed) bool { return h.ID == e.ID }) {
				want[endpoint+" "+e.ID.String()] = stateDelivered
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("deliveries %v, want %v", got, want)
	}
	if n := k.count("select count(*) from deliveries where state = 'skipped' and reason = 'filter'"); n != 3 {
		t.Errorf("%d are skipped because of a filter, want 3", n)
	}
	if n := k.count("select count(*) from deliveries where state <> 'skipped' and reason is not null"); n != 0 {
		t.Errorf("%d that were sent have a reason why not", n)
	}
	if after := k.dump(); after != before {
		t.Errorf("the repeat has changed\n%s\nto\n%s", before, after)
	}
	if n := in.count(); n != 5 {
		t.Errorf("%d were posted, want 5", n)
	}
}
