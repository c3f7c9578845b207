package sales

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

const linkStatement = `
insert into links (tenant_id, campaign_id, partner_id, link_id)
select c.tenant_id, c.campaign_id, p.partner_id, $4::uuid
from campaigns c join partners p on p.tenant_id = c.tenant_id and p.partner_id = $3
where c.tenant_id = $1 and c.campaign_id = $2
on conflict (tenant_id, campaign_id, partner_id) do update set link_id = links.link_id
returning link_id = $4`

// linkPartner answers PUT /api/v1/campaigns/{campaign_id}/partners/{partner_id}:
// from now on the partner may sell in the campaign. Doing it again changes nothing.
func (s *Service) linkPartner(call *web.Call) (web.Answer, error) {
	campaignID, partnerID, err := linkPath(call)
	if err != nil {
		return web.Answer{}, err
	}
	if _, err := s.link(call.Context(), call.Tenant(), campaignID, partnerID); err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: 204}, nil
}

// link links the two and tells whether they were not linked before; 404 where the
// tenant lacks one of them.
func (s *Service) link(ctx context.Context, tenant, campaignID, partnerID uuid.UUID) (fresh bool, err error) {
	linkID, err := uuid.NewV7()
	if err != nil {
		return false, err
	}
	err = s.deps.Pool.QueryRow(ctx, linkStatement, tenant, campaignID, partnerID, linkID).Scan(&fresh)
	if postgres.Absent(err) {
		return false, web.NotFound()
	}
	if err != nil {
		return false, fmt.Errorf("link partner: %w", postgres.Explain(err))
	}
	return fresh, nil
}

const linkableQuery = `
select exists (select from campaigns where tenant_id = $1 and campaign_id = $2)
   and exists (select from partners where tenant_id = $1 and partner_id = $3)`

const unlinkStatement = `delete from links where tenant_id = $1 and campaign_id = $2 and partner_id = $3`

// unlinkPartner answers DELETE /api/v1/campaigns/{campaign_id}/partners/{partner_id}.
// Doing it again changes nothing.
func (s *Service) unlinkPartner(call *web.Call) (web.Answer, error) {
	campaignID, partnerID, err := linkPath(call)
	if err != nil {
		return web.Answer{}, err
	}
	err = s.change(call.Context(), call.Tenant(), func(tx *postgres.Tx) error {
		var linkable bool
		if err := tx.QueryRow(call.Context(), linkableQuery, call.Tenant(), campaignID, partnerID).Scan(&linkable); err != nil {
			return fmt.Errorf("read link: %w", err)
		}
		if !linkable {
			return web.NotFound()
		}
		_, err := tx.Exec(call.Context(), unlinkStatement, call.Tenant(), campaignID, partnerID)
		return err
	})
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: 204}, nil
}

func linkPath(call *web.Call) (campaignID, partnerID uuid.UUID, err error) {
	if campaignID, err = call.PathID("campaign_id"); err != nil {
		return
	}
	partnerID, err = call.PathID("partner_id")
	return
}

// linkedPartner is a partner as a campaign lists it.
type linkedPartner struct {
	partner `json:",embed"`
	linkID  uuid.UUID
}

const listLinksQuery = `
select l.link_id, p.partner_id, p.referral_code, p.name, p.email, p.status, p.created_at
from links l join partners p on p.tenant_id = l.tenant_id and p.partner_id = l.partner_id
where l.tenant_id = @tenant_id and l.campaign_id = @campaign_id and (@after::uuid is null or l.link_id < @after)
order by l.link_id desc limit @limit`

func scanLink(row pgx.CollectableRow) (l linkedPartner, err error) {
	return l, row.Scan(&l.linkID, &l.PartnerID, &l.ReferralCode, &l.Name, &l.Email, &l.Status, &l.CreatedAt)
}

// listLinks answers GET /api/v1/campaigns/{campaign_id}/partners, the last linked first.
func (s *Service) listLinks(call *web.Call) (web.Answer, error) {
	campaignID, err := s.existing(call, "campaign_id", campaignExistsQuery)
	if err != nil {
		return web.Answer{}, err
	}
	return list(s, call, scanLink, func(l linkedPartner) uuid.UUID { return l.linkID }, listLinksQuery, pgx.NamedArgs{"campaign_id": campaignID})
}
