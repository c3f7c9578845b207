package commissions

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// partner is what one event said of a partner.
type partner struct {
	partnerKey
	name, referralCode, status string
	version                    int64 // 0 as created; the highest holds
}

type partnerKey struct{ tenant, id uuid.UUID }

func (k partnerKey) compare(other partnerKey) int {
	return cmp.Or(bytes.Compare(k.tenant[:], other.tenant[:]), bytes.Compare(k.id[:], other.id[:]))
}

// partnerCreated takes over new partners, unless something newer is known of them.
func (s *Service) partnerCreated(ctx context.Context, tx *postgres.Tx, events []event.Event[event.PartnerCreated]) error {
	heard := make([]partner, len(events))
	for i, e := range events {
		heard[i] = partner{partnerKey{e.TenantID, e.Data.PartnerID}, e.Data.Name, e.Data.ReferralCode, e.Data.Status, 0}
	}
	return keepPartners(tx, heard)
}

// partnerChanged takes over what partners are like now, also of those whose creation
// has not been heard of yet.
func (s *Service) partnerChanged(ctx context.Context, tx *postgres.Tx, events []event.Event[event.PartnerChanged]) error {
	heard := make([]partner, len(events))
	for i, e := range events {
		if e.Data.Version < 1 {
			return invalid("version %d of a changed partner is not above 0", e.Data.Version)
		}
		heard[i] = partner{partnerKey{e.TenantID, e.Data.PartnerID}, e.Data.Name, e.Data.ReferralCode, e.Data.Status, e.Data.Version}
	}
	return keepPartners(tx, heard)
}

const keepPartnersStatement = `
insert into partners (tenant_id, partner_id, name, referral_code, status, version)
select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[])
on conflict (tenant_id, partner_id) do update
set name = excluded.name, referral_code = excluded.referral_code, status = excluded.status, version = excluded.version
where partners.version < excluded.version`

// keepPartners leaves the highest version of each partner, whatever the order in which
// they are heard.
func keepPartners(tx *postgres.Tx, heard []partner) error {
	newest := make(map[partnerKey]partner, len(heard)) // one statement can change a row only once
	for _, p := range heard {
		if err := p.check(); err != nil {
			return err
		}
		if known, ok := newest[p.partnerKey]; !ok || known.version < p.version {
			newest[p.partnerKey] = p
		}
	}
	keys := slices.SortedFunc(maps.Keys(newest), partnerKey.compare) // one lock order for both consumers
	n := len(keys)
	tenants, ids, versions := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]int64, n)
	names, codes, statuses := make([]string, n), make([]string, n), make([]string, n)
	for i, key := range keys {
		p := newest[key]
		tenants[i], ids[i], versions[i] = p.tenant, p.id, p.version
		names[i], codes[i], statuses[i] = p.name, p.referralCode, p.status
	}
	tx.Later(postgres.Doing("keep partners"), keepPartnersStatement, tenants, ids, names, codes, statuses, versions)
	return nil
}

// partnerStatuses are all that a partner can be.
var partnerStatuses = []string{"pending", "active", "suspended", "banned"}

// check tells what of a partner cannot be stored.
func (p partner) check() error {
	switch {
	case p.id == uuid.Nil:
		return invalid("partner_id is missing")
	case !slices.Contains(partnerStatuses, p.status):
		return invalid("a partner cannot be %q", p.status)
	case p.referralCode == "":
		return invalid("referral_code is missing")
	case strings.ContainsRune(p.name+p.referralCode, 0):
		return invalid("U+0000 cannot be part of a text")
	}
	return nil
}
