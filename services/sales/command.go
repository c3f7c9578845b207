package sales

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/service"
)

// Commands are what an operator does at the command line of this service.
func Commands() []service.Command {
	return []service.Command{
		{Usage: "tenant create NAME", About: "add a tenant and print its id", Run: createTenantCommand},
		{Usage: "key issue TENANT_ID NAME", About: "make a key with every scope and print it, this once", Run: issueKeyCommand},
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
	tenant, err := uuid.Parse(args[0])
	if err != nil {
		return fmt.Errorf("%q is not the id of a tenant", args[0])
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
