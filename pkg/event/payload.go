package event

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/money"
)

// The names of the events. A name is also the NATS subject.
const (
	NameSaleRecorded            = "sale.recorded"
	NameSaleRefunded            = "sale.refunded"
	NameConversionRecorded      = "conversion.recorded"
	NamePartnerCreated          = "partner.created"
	NamePartnerChanged          = "partner.changed"
	NameCommissionAvailable     = "commission.available"
	NameCommissionBonus         = "commission.bonus"
	NameCommissionReleased      = "commission.released"
	NameCommissionReversed      = "commission.reversed"
	NameWithdrawalRequested     = "withdrawal.requested"
	NameWithdrawalStatusChanged = "withdrawal.status_changed"
	NameGoalReached             = "goal.reached"
)

// Default are the events that a webhook endpoint hears which asks for "*".
// The others must be named.
var Default = []string{
	NamePartnerCreated, NameConversionRecorded, NameCommissionAvailable,
	NameWithdrawalRequested, NameWithdrawalStatusChanged,
}

// Internal tells whether an event stays between the services: it is neither
// delivered to a tenant nor shown in the feed.
func Internal(name string) bool { return name == NamePartnerChanged }

// SaleRecorded tells that a sale was recorded once and for all, with the commission
// that was decided together with it.
type SaleRecorded struct {
	SaleID           uuid.UUID `json:"sale_id"`
	PartnerID        uuid.UUID `json:"partner_id"`
	CampaignID       uuid.UUID `json:"campaign_id"`
	PlanID           uuid.UUID `json:"plan_id"`
	ExternalRef      string    `json:"external_ref"`
	Amount           money.BRL `json:"amount_brl"`
	SoldAt           time.Time `json:"sold_at"`
	CommissionID     uuid.UUID `json:"commission_id"`
	CommissionPct    money.Pct `json:"commission_pct"`
	CommissionAmount money.BRL `json:"commission_amount_brl"`
	HoldDays         int       `json:"hold_days"` // days after SoldAt before the commission may be withdrawn
}

// EventName is sale.recorded.
func (SaleRecorded) EventName() string { return NameSaleRecorded }

// ConversionRecorded tells that a conversion, something short of a sale, was recorded
// once and for all. Both members of its commission have a value, or neither has.
type ConversionRecorded struct {
	ConversionID     uuid.UUID  `json:"conversion_id"`
	PartnerID        uuid.UUID  `json:"partner_id"`
	CampaignID       uuid.UUID  `json:"campaign_id"`
	PlanID           *uuid.UUID `json:"plan_id"` // null: none was named
	Type             string     `json:"type"`    // lead, signup, trial or custom
	ExternalRef      string     `json:"external_ref"`
	Value            *money.BRL `json:"value_brl"`     // what it is worth to the tenant
	CommissionID     *uuid.UUID `json:"commission_id"` // null: it earned nothing
	CommissionAmount *money.BRL `json:"commission_amount_brl"`
	OccurredAt       time.Time  `json:"occurred_at"`
}

// EventName is conversion.recorded.
func (ConversionRecorded) EventName() string { return NameConversionRecorded }

// SaleRefunded tells that a part of a sale, or all of it, was given back, and what of
// its commission was taken back with it. Both were decided together and are final.
type SaleRefunded struct {
	RefundID           uuid.UUID `json:"refund_id"`
	SaleID             uuid.UUID `json:"sale_id"`
	PartnerID          uuid.UUID `json:"partner_id"`
	CampaignID         uuid.UUID `json:"campaign_id"`
	CommissionID       uuid.UUID `json:"commission_id"`
	Amount             money.BRL `json:"amount_brl"`
	CommissionReversed money.BRL `json:"commission_reversed_brl"` // by this refund alone
	RefundedTotal      money.BRL `json:"refunded_total_brl"`      // of the sale, this refund included
	SaleAmount         money.BRL `json:"sale_amount_brl"`
	CommissionAmount   money.BRL `json:"commission_amount_brl"` // as it was earned, before any refund
	SoldAt             time.Time `json:"sold_at"`
	RefundedAt         time.Time `json:"refunded_at"`
}

// EventName is sale.refunded.
func (SaleRefunded) EventName() string { return NameSaleRefunded }

// PartnerCreated tells that a partner joined a tenant's programme.
type PartnerCreated struct {
	PartnerID    uuid.UUID `json:"partner_id"`
	Name         string    `json:"name"`
	ReferralCode string    `json:"referral_code"`
	Status       string    `json:"status"`
	CreatedAt    time.Time `json:"created_at"`
}

// EventName is partner.created.
func (PartnerCreated) EventName() string { return NamePartnerCreated }

// PartnerChanged tells the other services what a partner is like now. Of two, the
// one with the higher Version holds.
type PartnerChanged struct {
	PartnerID    uuid.UUID `json:"partner_id"`
	Name         string    `json:"name"`
	ReferralCode string    `json:"referral_code"`
	Status       string    `json:"status"`
	Version      int64     `json:"version"`
}

// EventName is partner.changed.
func (PartnerChanged) EventName() string { return NamePartnerChanged }

// CommissionAvailable tells that the commission of a sale or conversion came into
// being. Its first four members are all that a receiver of the first version knew.
type CommissionAvailable struct {
	CommissionID       uuid.UUID  `json:"commission_id"`
	PartnerID          uuid.UUID  `json:"partner_id"`
	Amount             money.BRL  `json:"amount_brl"`
	SourceSaleID       *uuid.UUID `json:"source_sale_id"`
	CampaignID         uuid.UUID  `json:"campaign_id"`
	SourceConversionID *uuid.UUID `json:"source_conversion_id"`
	Kind               string     `json:"kind"`         // sale or conversion
	Status             string     `json:"status"`       // available, or pending while it is held
	AvailableAt        time.Time  `json:"available_at"` // when it is, or was, free to withdraw
}

// EventName is commission.available.
func (CommissionAvailable) EventName() string { return NameCommissionAvailable }

// CommissionBonus tells that a goal earned a partner its reward. It can be withdrawn at once.
type CommissionBonus struct {
	CommissionID uuid.UUID `json:"commission_id"`
	PartnerID    uuid.UUID `json:"partner_id"`
	Amount       money.BRL `json:"amount_brl"`
	SourceGoalID uuid.UUID `json:"source_goal_id"`
	CreatedAt    time.Time `json:"created_at"`
}

// EventName is commission.bonus.
func (CommissionBonus) EventName() string { return NameCommissionBonus }

// CommissionReleased tells that a commission which was held back no longer is.
type CommissionReleased struct {
	CommissionID     uuid.UUID  `json:"commission_id"`
	PartnerID        uuid.UUID  `json:"partner_id"`
	CampaignID       *uuid.UUID `json:"campaign_id"`
	SourceSaleID     *uuid.UUID `json:"source_sale_id"`
	Amount           money.BRL  `json:"amount_brl"`            // that is free now: the commission, less what refunds took back before
	CommissionAmount money.BRL  `json:"commission_amount_brl"` // as it was earned
	Reason           string     `json:"reason"`                // hold_ended
	AvailableAt      time.Time  `json:"available_at"`          // when the hold ended
	ReleasedAt       time.Time  `json:"released_at"`
}

// EventName is commission.released.
func (CommissionReleased) EventName() string { return NameCommissionReleased }

// CommissionReversed tells that a commission, or a part of it, was taken back.
type CommissionReversed struct {
	CommissionID     uuid.UUID  `json:"commission_id"`
	PartnerID        uuid.UUID  `json:"partner_id"`
	CampaignID       *uuid.UUID `json:"campaign_id"`
	SourceSaleID     *uuid.UUID `json:"source_sale_id"`
	RefundID         uuid.UUID  `json:"refund_id"`             // that took it back
	Amount           money.BRL  `json:"amount_brl"`            // by this refund alone
	ReversedTotal    money.BRL  `json:"reversed_total_brl"`    // by all refunds so far
	CommissionAmount money.BRL  `json:"commission_amount_brl"` // as it was earned
	Status           string     `json:"status"`                // of the commission afterwards
	Reason           string     `json:"reason"`                // sale_refunded
	ReversedAt       time.Time  `json:"reversed_at"`
}

// EventName is commission.reversed.
func (CommissionReversed) EventName() string { return NameCommissionReversed }

// WithdrawalRequested tells that a partner asked to be paid, and that the amount is
// reserved from then on. The key is masked: an event is no place for a whole one.
type WithdrawalRequested struct {
	WithdrawalID uuid.UUID `json:"withdrawal_id"`
	PartnerID    uuid.UUID `json:"partner_id"`
	Amount       money.BRL `json:"amount_brl"`
	KeyType      string    `json:"pix_key_type"` // cpf, cnpj, phone, email or evp
	KeyMasked    string    `json:"pix_key_masked"`
	Status       string    `json:"status"` // requested
	RequestedAt  time.Time `json:"requested_at"`
}

// EventName is withdrawal.requested.
func (WithdrawalRequested) EventName() string { return NameWithdrawalRequested }

// WithdrawalStatusChanged tells of every state of a withdrawal but the first.
type WithdrawalStatusChanged struct {
	WithdrawalID   uuid.UUID `json:"withdrawal_id"`
	PartnerID      uuid.UUID `json:"partner_id"`
	Amount         money.BRL `json:"amount_brl"`
	KeyType        string    `json:"pix_key_type"`
	KeyMasked      string    `json:"pix_key_masked"`
	Status         string    `json:"status"` // approved, paid, rejected, cancelled or failed
	RequestedAt    time.Time `json:"requested_at"`
	PreviousStatus string    `json:"previous_status"`
	Reason         *string   `json:"reason"`
	FailureCode    *string   `json:"failure_code"`  // the bank's, where the payment failed
	EndToEndID     *string   `json:"end_to_end_id"` // of the payment, as the bank knows it
	ChangedAt      time.Time `json:"changed_at"`
}

// EventName is withdrawal.status_changed.
func (WithdrawalStatusChanged) EventName() string { return NameWithdrawalStatusChanged }

// GoalReached tells that a partner reached a goal in one period; it is told once.
type GoalReached struct {
	GoalID      uuid.UUID  `json:"goal_id"`
	Name        string     `json:"name"`
	PartnerID   uuid.UUID  `json:"partner_id"`
	Metric      string     `json:"metric"`
	Target      Quantity   `json:"target"`
	Progress    Quantity   `json:"progress"`
	PeriodStart time.Time  `json:"period_start"`
	PeriodEnd   *time.Time `json:"period_end"` // null: the period has no end
	ReachedAt   time.Time  `json:"reached_at"`
	Reward      *money.BRL `json:"reward_brl"`
}

// EventName is goal.reached.
func (GoalReached) EventName() string { return NameGoalReached }

// Quantity is a number as a goal counts it: a count without decimals, or an amount
// with two.
type Quantity struct {
	Value    int64 // units, or centavos
	IsAmount bool
}

// String is the number as the wire shows it.
func (q Quantity) String() string {
	if q.IsAmount {
		return money.BRL(q.Value).String()
	}
	return strconv.FormatInt(q.Value, 10)
}

// MarshalJSON writes a JSON number.
func (q Quantity) MarshalJSON() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalJSON reads a JSON number; one with a point is an amount. On an error the
// quantity stays as it was.
func (q *Quantity) UnmarshalJSON(token []byte) error {
	if !bytes.ContainsRune(token, '.') {
		count, err := strconv.ParseInt(string(token), 10, 64)
		if err != nil {
			return fmt.Errorf("read count: %w", err)
		}
		*q = Quantity{Value: count}
		return nil
	}
	amount, err := money.ParseBRL(string(token))
	if err != nil {
		return fmt.Errorf("read amount: %w", err)
	}
	*q = Quantity{Value: amount.Centavos(), IsAmount: true}
	return nil
}
