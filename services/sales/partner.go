package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
)

// partner is a seller, known to payment systems by the referral code.
type partner struct {
	PartnerID    uuid.UUID `json:"partner_id"`
	ReferralCode string    `json:"referral_code"`
	Name         string    `json:"name"`
	Email        *string   `json:"email"`
	Status       string    `json:"status"` // only active sells
	CreatedAt    time.Time `json:"created_at"`
}

var partnerTransitions = transitions{
	"pending":   {"active", "banned"},
	"active":    {"suspended", "banned"},
	"suspended": {"active", "banned"},
}

const createPartnerStatement = `
insert into partners (tenant_id, partner_id, referral_code, name, email, status, external_ref, first, created_at)
values (@tenant_id, @partner_id, @referral_code, @name, @email, @status, @external_ref, @first, @created_at)
on conflict do nothing`

const firstPartnerQuery = `select first from partners where tenant_id = @tenant_id and external_ref = @external_ref`

type partnerBody struct {
	Name         string  `json:"name"`
	ReferralCode string  `json:"referral_code"`
	Email        *string `json:"email"`
	Status       *string `json:"status"`
	ExternalRef  *string `json:"external_ref"`
}

// createPartner answers POST /api/v1/partners and tells partner.created.
func (s *Service) createPartner(call *web.Call) (web.Answer, error) {
	var body partnerBody
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	creation, err := s.newPartner(call.Tenant(), body)
	if err != nil {
		return web.Answer{}, err
	}
	return create(call.Context(), s, creation)
}

// newPartner prepares a partner and the event that tells of it.
func (s *Service) newPartner(tenant uuid.UUID, body partnerBody) (creation[partner], error) {
	id, err := uuid.NewV7()
	p := partner{
		PartnerID: id, ReferralCode: body.ReferralCode, Name: body.Name, Email: body.Email,
		Status: orElse(body.Status, "active"), CreatedAt: event.Instant(s.deps.Now()),
	}
	return creation[partner]{
		tenant: tenant, externalRef: body.ExternalRef, view: p, own: "partner_id", taken: "referral_code",
		firstQuery: firstPartnerQuery,
		insert: func(ctx context.Context, tx *postgres.Tx, first []byte) (bool, error) {
			tag, err := tx.Exec(ctx, createPartnerStatement, pgx.NamedArgs{
				"tenant_id": tenant, "partner_id": p.PartnerID, "referral_code": p.ReferralCode, "name": p.Name, "email": p.Email,
				"status": p.Status, "external_ref": body.ExternalRef, "first": first, "created_at": p.CreatedAt,
			})
			if err != nil || tag.RowsAffected() == 0 {
				return false, err
			}
			told, err := event.Seal(tenant, p.PartnerID.String(), p.CreatedAt, event.PartnerCreated{
				PartnerID: p.PartnerID, Name: p.Name, ReferralCode: p.ReferralCode, Status: p.Status, CreatedAt: p.CreatedAt,
			}, trace.Parent(ctx))
			if err != nil {
				return false, err
			}
			s.relay.Add(tx, told)
			return true, nil
		},
	}, err
}

const partnerColumns = `partner_id, referral_code, name, email, status, created_at`

func scanPartner(row pgx.CollectableRow) (p partner, err error) {
	return p, row.Scan(&p.PartnerID, &p.ReferralCode, &p.Name, &p.Email, &p.Status, &p.CreatedAt)
}

const listPartnersQuery = `
select ` + partnerColumns + ` from partners
where tenant_id = @tenant_id and (@after::uuid is null or partner_id < @after)
  and (@referral_code::text is null or referral_code = @referral_code)
  and (@email::text is null or email = @email)
  and (@status::text is null or status = @status)
order by partner_id desc limit @limit`

// listPartners answers GET /api/v1/partners.
func (s *Service) listPartners(call *web.Call) (web.Answer, error) {
	code, err := call.QueryText("referral_code", longestCode)
	if err != nil {
		return web.Answer{}, err
	}
	email, err := call.QueryText("email", longestEmail)
	if err != nil {
		return web.Answer{}, err
	}
	status, err := call.QueryChoice("status", "pending", "active", "suspended", "banned")
	if err != nil {
		return web.Answer{}, err
	}
	filters := pgx.NamedArgs{"referral_code": code, "email": email, "status": status}
	return list(s, call, scanPartner, func(p partner) uuid.UUID { return p.PartnerID }, listPartnersQuery, filters)
}

const getPartnerQuery = `select ` + partnerColumns + ` from partners where tenant_id = $1 and partner_id = $2`

// getPartner answers GET /api/v1/partners/{partner_id}.
func (s *Service) getPartner(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("partner_id")
	if err != nil {
		return web.Answer{}, err
	}
	return getOne(s, call, scanPartner, getPartnerQuery, call.Tenant(), id)
}

const changePartnerStatement = `
update partners set name = @name, email = @email, status = @status, version = version + 1
where tenant_id = @tenant_id and partner_id = @partner_id returning version`

// changePartner answers PATCH /api/v1/partners/{partner_id} and tells the other
// services what the partner is like now.
func (s *Service) changePartner(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("partner_id")
	if err != nil {
		return web.Answer{}, err
	}
	var body struct {
		Name   *string                  `json:"name"`
		Email  openapi.Optional[string] `json:"email"`
		Status *string                  `json:"status"`
	}
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	return amend(s, call, id, getPartnerQuery, scanPartner, func(tx *postgres.Tx, p *partner) error {
		if err := partnerTransitions.check(p.Status, orElse(body.Status, p.Status)); err != nil {
			return err
		}
		p.Name, p.Email, p.Status = orElse(body.Name, p.Name), body.Email.Over(p.Email), orElse(body.Status, p.Status)
		var version int64
		err = tx.QueryRow(call.Context(), changePartnerStatement, pgx.NamedArgs{
			"tenant_id": call.Tenant(), "partner_id": id, "name": p.Name, "email": p.Email, "status": p.Status,
		}).Scan(&version)
		if err != nil {
			return err
		}
		told, err := event.Seal(call.Tenant(), fmt.Sprintf("%s/%d", id, version), s.deps.Now(), event.PartnerChanged{
			PartnerID: id, Name: p.Name, ReferralCode: p.ReferralCode, Status: p.Status, Version: version,
		}, trace.Parent(call.Context()))
		if err != nil {
			return err
		}
		s.relay.Add(tx, told)
		return nil
	})
}

// orElse is the value that is given, or else what holds without it.
func orElse[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}
