package webhooks

import (
	"bytes"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/service"
)

func TestTheSampleOfAnEventHasExactlyTheMembersOfTheEvent(t *testing.T) {
	t.Parallel()
	var samples map[string]jsontext.Value
	if err := json.Unmarshal(samplesFile, &samples); err != nil {
		t.Fatal(err)
	}
	if len(samples) != len(deliverable) {
		t.Errorf("there are %d samples, want one of each of %d events", len(samples), len(deliverable))
	}
	for name, shape := range map[string]any{
		event.NameSaleRecorded: &event.SaleRecorded{}, event.NameSaleRefunded: &event.SaleRefunded{},
		event.NameConversionRecorded: &event.ConversionRecorded{}, event.NamePartnerCreated: &event.PartnerCreated{},
		event.NameCommissionAvailable: &event.CommissionAvailable{}, event.NameCommissionBonus: &event.CommissionBonus{},
		event.NameCommissionReleased: &event.CommissionReleased{}, event.NameCommissionReversed: &event.CommissionReversed{},
		event.NameWithdrawalRequested: &event.WithdrawalRequested{}, event.NameWithdrawalStatusChanged: &event.WithdrawalStatusChanged{},
		event.NameGoalReached: &event.GoalReached{},
	} {
		if err := json.Unmarshal(samples[name], shape, json.RejectUnknownMembers(true)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := json.Marshal(shape)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, samples[name]) {
			t.Errorf("the sample of %s is\n%s\nand the event would be\n%s", name, samples[name], again)
		}
	}
}

func TestEverySampleIsAnEventThatCanBeRead(t *testing.T) {
	t.Parallel()
	s := &Service{deps: service.Deps{Now: time.Now}}
	tenant, seen := uuid.New(), map[event.ID]bool{}
	for _, name := range deliverable {
		for range 2 {
			made, err := s.sample(tenant, name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if e, err := event.Open(made.Body); err != nil || e.Name != name || e.TenantID != tenant || seen[e.ID] || time.Since(e.CreatedAt) > time.Minute {
				t.Errorf("the sample of %s is read as %+v, %v", name, e, err)
			}
			seen[made.ID] = true
		}
	}
}
