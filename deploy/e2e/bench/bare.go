package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
	"partilha.dev/services/sales"
)

// bare answers POST /api/v1/sales without a database: all that HTTP, JSON and the
// decision itself cost, and nothing of what makes a sale last. It goes through the
// same web package and the same OpenAPI document as the service. It knows one key,
// and every partner, campaign and plan sells at ten percent.
type bare struct {
	key auth.Key
	now func() time.Time
}

// Key is the one key, whatever the credential names: whether it admits is checked by
// the caller.
func (b *bare) Key(context.Context, auth.Credential, auth.Scope) (auth.Key, error) { return b.key, nil }

// bareReport has the members of the sales service's own request.
type bareReport struct {
	ReferralCode string        `json:"referral_code"`
	CampaignID   uuid.UUID     `json:"campaign_id"`
	PlanID       uuid.UUID     `json:"plan_id"`
	Amount       money.BRL     `json:"amount_brl"`
	ExternalRef  string        `json:"external_ref"`
	SoldAt       *openapi.Time `json:"sold_at"`
	CustomerRef  *string       `json:"customer_ref"`
	Notes        *string       `json:"notes"`
}

// bareReceipt has the members of its answer.
type bareReceipt struct {
	SaleID           uuid.UUID `json:"sale_id"`
	CommissionID     uuid.UUID `json:"commission_id"`
	CommissionAmount money.BRL `json:"commission_amount_brl"`
	Idempotent       bool      `json:"idempotent"`
}

const barePct = money.Pct(10_0000) // 10 %

func (b *bare) recordSale(call *web.Call) (web.Answer, error) {
	var r bareReport
	if err := call.Decode(&r); err != nil {
		return web.Answer{}, err
	}
	now := b.now()
	if err := b.key.Admit(call.Credential, auth.SalesWrite, now); err != nil {
		return web.Answer{}, err
	}
	saleID, err := uuid.NewV7()
	if err != nil {
		return web.Answer{}, err
	}
	commissionID, err := uuid.NewV7()
	if err != nil {
		return web.Answer{}, err
	}
	at := event.Instant(now)
	soldAt := at
	if r.SoldAt != nil {
		soldAt = r.SoldAt.Time
	}
	commission := money.Percent(r.Amount, barePct)
	_, err = event.Seal(call.Tenant(), saleID.String(), at, event.SaleRecorded{
		SaleID: saleID, PartnerID: b.key.TenantID, CampaignID: r.CampaignID, PlanID: r.PlanID,
		ExternalRef: r.ExternalRef, Amount: r.Amount, SoldAt: soldAt,
		CommissionID: commissionID, CommissionPct: barePct, CommissionAmount: commission,
	}, trace.Parent(call.Context()))
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: 201, Body: bareReceipt{saleID, commissionID, commission, false}}, nil
}

// serveBare runs the handler until ctx ends.
func serveBare(ctx context.Context, log *zap.Logger, announce func(announcement) error) error {
	document, err := sales.Document()
	if err != nil {
		return fmt.Errorf("load the OpenAPI document: %w", err)
	}
	text, keyID, hash, err := auth.NewSecret()
	if err != nil {
		return err
	}
	b := &bare{now: time.Now, key: auth.Key{ID: keyID, Hash: hash, TenantID: uuid.New(), Scopes: auth.AllScopes}}
	api, err := web.API{
		Document: document, Keys: b, Log: log, Now: time.Now,
		Routes: []web.Route{{Method: "POST", Pattern: "/api/v1/sales", Access: web.Scope(auth.SalesWrite), Handle: b.recordSale}},
	}.Handler()
	if err != nil {
		return err
	}
	ready := func(context.Context) web.Readiness { return web.Readiness{Status: "ready"} }
	handler := web.System{Document: document, Ready: ready}.Around(api)
	return listenAndServe(ctx, announcement{Key: text}, announce, func(ctx context.Context, listener net.Listener) error {
		return web.Serve(ctx, listener, handler)
	})
}
