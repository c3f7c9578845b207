package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// tenant is a customer of the platform. While it is suspended none of its keys work.
type tenant struct {
	TenantID  uuid.UUID `json:"tenant_id"`
	Name      string    `json:"name"`
	Status    string    `json:"status"`
	CreatedAt time.Time `json:"created_at"`
}

const createTenantStatement = `
insert into tenants (tenant_id, name, status, external_ref, first, created_at)
values (@tenant_id, @name, @status, @external_ref, @first, @created_at)
on conflict do nothing`

const firstTenantQuery = `
select first from tenants where external_ref = @external_ref and @tenant_id::uuid is not null`

// createTenant answers POST /admin/v1/tenants.
func (s *Service) createTenant(call *web.Call) (web.Answer, error) {
	var body struct {
		Name        string  `json:"name"`
		ExternalRef *string `json:"external_ref"`
	}
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	creation, err := s.newTenant(body.Name, body.ExternalRef)
	if err != nil {
		return web.Answer{}, err
	}
	return create(call.Context(), s, creation)
}

// newTenant prepares a tenant that is active from the start.
func (s *Service) newTenant(name string, externalRef *string) (creation[tenant], error) {
	id, err := uuid.NewV7()
	t := tenant{TenantID: id, Name: name, Status: "active", CreatedAt: event.Instant(s.deps.Now())}
	return creation[tenant]{
		tenant: id, externalRef: externalRef, view: t, own: "tenant_id", taken: "external_ref", firstQuery: firstTenantQuery,
		insert: func(ctx context.Context, tx *postgres.Tx, first []byte) (bool, error) {
			tag, err := tx.Exec(ctx, createTenantStatement, pgx.NamedArgs{
				"tenant_id": t.TenantID, "name": t.Name, "status": t.Status, "external_ref": externalRef, "first": first, "created_at": t.CreatedAt,
			})
			return tag.RowsAffected() == 1, err
		},
	}, err
}

const listTenantsQuery = `
select tenant_id, name, status, created_at from tenants
where @after::uuid is null or tenant_id < @after
order by tenant_id desc limit @limit`

func scanTenant(row pgx.CollectableRow) (t tenant, err error) {
	return t, row.Scan(&t.TenantID, &t.Name, &t.Status, &t.CreatedAt)
}

// listTenants answers GET /admin/v1/tenants.
func (s *Service) listTenants(call *web.Call) (web.Answer, error) {
	return list(s, call, scanTenant, func(t tenant) uuid.UUID { return t.TenantID }, listTenantsQuery, pgx.NamedArgs{})
}

const changeTenantStatement = `
update tenants set status = coalesce($2, status) where tenant_id = $1
returning tenant_id, name, status, created_at`

// Only the keys that still work are told of again, of which a tenant has few. A dead key
// is refused whatever its tenant is, and there may be any number of them, behind which
// the next change of another tenant would wait.
const touchKeysStatement = `
update api_keys set version = nextval('api_key_version')
where tenant_id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)`

// changeTenant answers PATCH /admin/v1/tenants/{tenant_id}.
func (s *Service) changeTenant(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("tenant_id")
	if err != nil {
		return web.Answer{}, err
	}
	var body struct {
		Status *string `json:"status"`
	}
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	t, err := s.setTenantStatus(call.Context(), id, body.Status)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: 200, Body: t}, nil
}

// setTenantStatus suspends a tenant or makes it active again; nil leaves it as it is, and
// 404 is a tenant that there is not. A suspension holds in this service at once and in
// the others within a second. Doing it again changes nothing.
func (s *Service) setTenantStatus(ctx context.Context, id uuid.UUID, status *string) (t tenant, err error) {
	err = s.change(ctx, id, func(tx *postgres.Tx) error {
		rows, err := tx.Query(ctx, changeTenantStatement, id, status)
		if err != nil {
			return fmt.Errorf("change tenant: %w", err)
		}
		if t, err = pgx.CollectExactlyOneRow(rows, scanTenant); err != nil {
			return fmt.Errorf("change tenant: %w", err)
		}
		_, err = tx.Exec(ctx, touchKeysStatement, id, s.deps.Now())
		return err
	})
	return t, err
}
