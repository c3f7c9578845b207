package sales

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/service"
)

// Commands are what an operator does at the command line of this service.
func Commands() []service.Command {
	return []service.Command{
		{Usage: "tenant create NAME", About: "add a tenant and print its id", Run: createTenantCommand},
		{Usage: "tenant suspend TENANT_ID", About: "have none of a tenant's keys work, in any service", Run: tenantStatusCommand("suspended")},
		{Usage: "tenant resume TENANT_ID", About: "have them work again", Run: tenantStatusCommand("active")},
		{Usage: "key issue TENANT_ID NAME", About: "make a key with every scope and print it, this once", Run: issueKeyCommand},
		{Usage: "key revoke KEY_ID", About: "end a key, named by its id or by its first 12 characters", Run: revokeKeyCommand},
		eraseCommand,
		importCommand,
	}
}

func createTenantCommand(ctx context.Context, deps service.Deps, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return errors.New("give the tenant one name")
	}
	s, err := New(ctx, Config{}, deps)
	if err != nil {
		return err
	}
	creation, err := s.newTenant(args[0], nil)
	if err != nil {
		return err
	}
	if _, err := create(ctx, s, creation); err != nil {
		return err
	}
	fmt.Println(creation.view.TenantID)
	return nil
}

func issueKeyCommand(ctx context.Context, deps service.Deps, args []string) error {
	if len(args) != 2 || args[1] == "" {
		return errors.New("name the tenant by its id, and the key")
	}
	tenant, err := readTenantID(args[0])
	if err != nil {
		return err
	}
	s, err := New(ctx, Config{}, deps)
	if err != nil {
		return err
	}
	key, err := s.issueKey(ctx, tenant, args[1], auth.AllScopes, nil)
	if err != nil {
		return err
	}
	fmt.Println(key.Clear)
	return nil
}

func readTenantID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return id, fmt.Errorf("%q is not the id of a tenant", text)
	}
	return id, nil
}

// noTenant is what a person is told whose tenant there is not, and err if it is another.
func noTenant(err error, id uuid.UUID) error {
	if fault.KindOf(err) == fault.NotFound {
		return fmt.Errorf("there is no tenant %s", id)
	}
	return err
}

// tenantStatusCommand makes the command that gives a tenant the status. Services that
// run learn of it as they do of the same change made through the API.
func tenantStatusCommand(status string) func(context.Context, service.Deps, []string) error {
	return func(ctx context.Context, deps service.Deps, args []string) error {
		if len(args) != 1 {
			return errors.New("name one tenant by its id")
		}
		id, err := readTenantID(args[0])
		if err != nil {
			return err
		}
		s, err := New(ctx, Config{}, deps)
		if err != nil {
			return err
		}
		t, err := s.setTenantStatus(ctx, id, &status)
		if err != nil {
			return noTenant(err, id)
		}
		fmt.Printf("tenant %s (%s) is %s\n", t.TenantID, t.Name, t.Status)
		return nil
	}
}

func revokeKeyCommand(ctx context.Context, deps service.Deps, args []string) error {
	if len(args) != 1 {
		return errors.New("name one key by its id, or by its first 12 characters")
	}
	s, err := New(ctx, Config{}, deps)
	if err != nil {
		return err
	}
	key, found, err := one(ctx, deps.Pool, scanNamedKey, namedKeyQuery, args[0])
	if err != nil {
		return fmt.Errorf("find key: %w", err)
	}
	if !found {
		return fmt.Errorf("there is no key %q", args[0])
	}
	if err := s.endKey(ctx, key.tenant, key.id); err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	fmt.Printf("key %s (%s, %s) of tenant %s is revoked\n", key.id, key.prefix, key.name, key.tenant)
	return nil
}

// namedKey is a key of any tenant, as an operator names and sees it.
type namedKey struct {
	tenant, id   uuid.UUID
	prefix, name string
}

// What names a key in a list, or in the text in which somebody has found it, is its prefix.
const namedKeyQuery = `
select tenant_id, api_key_id, 'ptl_' || key_id, name from api_keys where api_key_id::text = lower($1) or 'ptl_' || key_id = $1`

func scanNamedKey(row pgx.CollectableRow) (k namedKey, err error) {
	return k, row.Scan(&k.tenant, &k.id, &k.prefix, &k.name)
}
