package event_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

var (
	tenant   = uuid.MustParse("01920000-0000-7000-8000-00000000000a")
	thing    = uuid.MustParse("01920000-0000-7000-8000-000000000001")
	partner  = uuid.MustParse("01920000-0000-7000-8000-000000000002")
	campaign = uuid.MustParse("01920000-0000-7000-8000-000000000003")
	plan     = uuid.MustParse("01920000-0000-7000-8000-000000000004")
	refund   = uuid.MustParse("01920000-0000-7000-8000-000000000005")
	moment   = time.Date(2026, 8, 14, 23, 59, 58, 120_000_000, time.UTC)
	later    = time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	reward   = money.BRL(25_000)
	reason   = "chave não encontrada"
	failure  = "AC03"
	endToEnd = "E12345678202608142359abcDEF12345"
	earned   = money.BRL(475)
)

// samples are events of every payload type, by name: first one with every member that
// can have a value, then others so that each member that may be null is.
func samples(t testing.TB) map[string]sample {
	return map[string]sample{
		event.NameSaleRecorded: sampleOf(t,
			event.SaleRecorded{
				SaleID: thing, PartnerID: partner, CampaignID: campaign, PlanID: plan, ExternalRef: `pedido "é" <&> 🙂`,
				Amount: 10_050, SoldAt: moment, CommissionID: plan, CommissionPct: 287_500, CommissionAmount: 2_889, HoldDays: 30,
			},
			event.SaleRecorded{SoldAt: later},
		),
		event.NameConversionRecorded: sampleOf(t,
			event.ConversionRecorded{
				ConversionID: thing, PartnerID: partner, CampaignID: campaign, PlanID: &plan, Type: "signup", ExternalRef: "cadastro nº 1",
				Value: &reward, CommissionID: &thing, CommissionAmount: &earned, OccurredAt: moment,
			},
			event.ConversionRecorded{ConversionID: thing, PartnerID: partner, CampaignID: campaign, Type: "lead", ExternalRef: "l", OccurredAt: later},
		),
		event.NameSaleRefunded: sampleOf(t,
			event.SaleRefunded{
				RefundID: refund, SaleID: thing, PartnerID: partner, CampaignID: campaign, CommissionID: plan, Amount: 5_025, CommissionReversed: 252,
				RefundedTotal: 7_000, SaleAmount: 10_050, CommissionAmount: 503, SoldAt: moment, RefundedAt: later,
			},
		),
		event.NamePartnerCreated: sampleOf(t,
			event.PartnerCreated{PartnerID: partner, Name: "João", ReferralCode: "JOAO-10", Status: "active", CreatedAt: moment},
		),
		event.NamePartnerChanged: sampleOf(t,
			event.PartnerChanged{PartnerID: partner, Name: "João", ReferralCode: "JOAO-10", Status: "suspended", Version: 7},
		),
		event.NameCommissionAvailable: sampleOf(t,
			event.CommissionAvailable{
				CommissionID: plan, PartnerID: partner, Amount: 503, SourceSaleID: &thing, CampaignID: campaign,
				SourceConversionID: nil, Kind: "sale", Status: "pending", AvailableAt: later,
			},
			event.CommissionAvailable{
				CommissionID: plan, PartnerID: partner, Amount: 0, SourceSaleID: nil, CampaignID: campaign,
				SourceConversionID: &thing, Kind: "conversion", Status: "available", AvailableAt: moment,
			},
		),
		event.NameCommissionBonus: sampleOf(t,
			event.CommissionBonus{CommissionID: plan, PartnerID: partner, Amount: reward, SourceGoalID: thing, CreatedAt: moment},
		),
		event.NameCommissionReleased: sampleOf(t,
			event.CommissionReleased{
				CommissionID: plan, PartnerID: partner, CampaignID: &campaign, SourceSaleID: &thing, Amount: 251, CommissionAmount: 503,
				Reason: "hold_ended", AvailableAt: moment, ReleasedAt: later,
			},
			event.CommissionReleased{CommissionID: plan, PartnerID: partner, Reason: "hold_ended", AvailableAt: moment, ReleasedAt: later},
		),
		event.NameCommissionReversed: sampleOf(t,
			event.CommissionReversed{
				CommissionID: plan, PartnerID: partner, CampaignID: &campaign, SourceSaleID: &thing, RefundID: refund, Amount: 252,
				ReversedTotal: 350, CommissionAmount: 503, Status: "pending", Reason: "sale_refunded", ReversedAt: later,
			},
			event.CommissionReversed{CommissionID: plan, PartnerID: partner, RefundID: refund, Status: "reversed", Reason: "sale_refunded", ReversedAt: later},
		),
		event.NameWithdrawalRequested: sampleOf(t,
			event.WithdrawalRequested{
				WithdrawalID: thing, PartnerID: partner, Amount: 32_000, KeyType: "cpf", KeyMasked: "***.982.247-**", Status: "requested", RequestedAt: moment,
			},
		),
		event.NameWithdrawalStatusChanged: sampleOf(t,
			event.WithdrawalStatusChanged{
				WithdrawalID: thing, PartnerID: partner, Amount: 32_000, KeyType: "cpf", KeyMasked: "***.982.247-**", Status: "failed", RequestedAt: moment,
				PreviousStatus: "approved", Reason: &reason, FailureCode: &failure, ChangedAt: later,
			},
			event.WithdrawalStatusChanged{
				WithdrawalID: thing, PartnerID: partner, Amount: 32_000, KeyType: "email", KeyMasked: "j***@example.com", Status: "paid", RequestedAt: moment,
				PreviousStatus: "approved", EndToEndID: &endToEnd, ChangedAt: later,
			},
		),
		event.NameGoalReached: sampleOf(t,
			event.GoalReached{
				GoalID: thing, Name: "Meta de agosto", PartnerID: partner, Metric: "sales_amount",
				Target:   event.Quantity{Value: 1_000_000, IsAmount: true},
				Progress: event.Quantity{Value: 1_000_050, IsAmount: true}, PeriodStart: moment, PeriodEnd: &later, ReachedAt: moment, Reward: &reward,
			},
			event.GoalReached{
				GoalID: thing, Name: "Dez vendas", PartnerID: partner, Metric: "sales_count",
				Target: event.Quantity{Value: 10}, Progress: event.Quantity{Value: 10}, PeriodStart: moment, ReachedAt: moment,
			},
		),
	}
}

// members is what a receiver may rely on: the members of each event's data, in order.
var members = map[string]string{
	event.NameSaleRecorded: "sale_id, partner_id, campaign_id, plan_id, external_ref, amount_brl, sold_at, commission_id, commission_pct, " +
		"commission_amount_brl, hold_days",
	event.NameSaleRefunded: "refund_id, sale_id, partner_id, campaign_id, commission_id, amount_brl, commission_reversed_brl, " +
		"refunded_total_brl, sale_amount_brl, commission_amount_brl, sold_at, refunded_at",
	event.NameConversionRecorded: "conversion_id, partner_id, campaign_id, plan_id, type, external_ref, value_brl, commission_id, " +
		"commission_amount_brl, occurred_at",
	event.NamePartnerCreated: "partner_id, name, referral_code, status, created_at",
	event.NamePartnerChanged: "partner_id, name, referral_code, status, version",
	event.NameCommissionAvailable: "commission_id, partner_id, amount_brl, source_sale_id, campaign_id, source_conversion_id, kind, status, " +
		"available_at",
	event.NameCommissionBonus: "commission_id, partner_id, amount_brl, source_goal_id, created_at",
	event.NameCommissionReleased: "commission_id, partner_id, campaign_id, source_sale_id, amount_brl, commission_amount_brl, reason, " +
		"available_at, released_at",
	event.NameCommissionReversed: "commission_id, partner_id, campaign_id, source_sale_id, refund_id, amount_brl, reversed_total_brl, " +
		"commission_amount_brl, status, reason, reversed_at",
	event.NameWithdrawalRequested: "withdrawal_id, partner_id, amount_brl, pix_key_type, pix_key_masked, status, requested_at",
	event.NameWithdrawalStatusChanged: "withdrawal_id, partner_id, amount_brl, pix_key_type, pix_key_masked, status, requested_at, " +
		"previous_status, reason, failure_code, end_to_end_id, changed_at",
	event.NameGoalReached: "goal_id, name, partner_id, metric, target, progress, period_start, period_end, reached_at, reward_brl",
}

// sample is the events of one payload type.
type sample struct {
	events  []event.Sealed
	rewrite func(event.Sealed) ([]byte, error) // reads one by its type and seals it again
}

func sampleOf[T event.Payload](t testing.TB, data ...T) sample {
	t.Helper()
	s := sample{rewrite: func(e event.Sealed) ([]byte, error) {
		read, err := event.Read[T](e)
		if err != nil {
			return nil, err
		}
		again, err := event.Seal(read.TenantID, cause, read.CreatedAt, read.Data, "")
		return again.Body, err
	}}
	for _, d := range data {
		s.events = append(s.events, seal(t, d))
	}
	return s
}

const cause = "the cause"

// seal makes an event that is the same in every run.
func seal[T event.Payload](t testing.TB, data T) event.Sealed {
	t.Helper()
	e, err := event.Seal(tenant, cause, moment, data, "")
	if err != nil {
		t.Fatal(err)
	}
	return e
}
