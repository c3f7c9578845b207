package sales

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
)

// reference is how a row names what another row or call has made: by our id, or by the
// external_ref or referral_code that the customer gave it.
type reference struct {
	member string // campaign_ref, campaign_id, plan_ref, plan_id or referral_code
	text   string
}

// reference reads which campaign or plan the row names.
func (r *importRow) reference(what string) reference {
	byRef, byID := what+"_ref", what+"_id"
	ref, id := r.text(byRef), r.text(byID)
	switch {
	case r.member(byRef) != nil && r.member(byID) != nil:
		r.issue(byID, "not_allowed", "must not stand beside "+byRef+"; give one of them")
	case r.member(byRef) != nil:
		return reference{byRef, ref}
	case r.member(byID) == nil:
		r.issue(byRef, "required", "must name the "+what+" by its external_ref, unless "+byID+" does by its id")
	default:
		if _, err := uuid.Parse(id); id != "" && (err != nil || len(id) != len(uuid.Nil.String())) {
			r.issue(byID, "format", "must be a UUID, written 8-4-4-4-12")
		}
	}
	return reference{byID, id}
}

const (
	campaignByRefQuery = `select campaign_id from campaigns where tenant_id = $1 and external_ref = $2`
	campaignByIDQuery  = `select campaign_id from campaigns where tenant_id = $1 and campaign_id = $2`
	planByRefQuery     = `select plan_id from plans where tenant_id = $1 and external_ref = $2`
	planByIDQuery      = `select plan_id from plans where tenant_id = $1 and plan_id = $2`
	partnerByCodeQuery = `select partner_id from partners where tenant_id = $1 and referral_code = $2`
)

var referenceQueries = map[string]string{
	"campaign_ref": campaignByRefQuery, "campaign_id": campaignByIDQuery,
	"plan_ref": planByRefQuery, "plan_id": planByIDQuery,
	"referral_code": partnerByCodeQuery,
}

// referenceLimit bounds how many references are remembered at a time.
const referenceLimit = 100_000

// references remembers what the references of one tenant stand for. What they stand
// for never changes, since nothing is deleted and no external_ref is given anew.
type references struct {
	pool   querier
	tenant uuid.UUID
	known  map[reference]uuid.UUID
}

// resolve returns the id; a refusal where the tenant has nothing of that name.
func (r *references) resolve(ctx context.Context, ref reference) (uuid.UUID, error) {
	if id, ok := r.known[ref]; ok {
		return id, nil
	}
	id, found, err := one(ctx, r.pool, pgx.RowTo[uuid.UUID], referenceQueries[ref.member], r.tenant, ref.text)
	if err != nil {
		return uuid.Nil, fmt.Errorf("look up %s: %w", ref.member, err)
	}
	if !found {
		f := fault.Newf(fault.NotFound, "not_found", "%s names nothing that this tenant has or that the file makes", ref.member)
		f.Details = []fault.Detail{{Path: "/" + ref.member, Code: "not_allowed", Message: "names nothing that there is"}}
		return uuid.Nil, f
	}
	if len(r.known) >= referenceLimit {
		clear(r.known)
	}
	r.known[ref] = id
	return id, nil
}
