// Command commissions runs the commissions service and the commands of its operator.
package main

import (
	"context"

	"partilha.dev/pkg/service"
	"partilha.dev/services/commissions"
)

func main() {
	var config commissions.Config
	service.Main(service.Program{
		Name: "commissions", Schemas: commissions.Migrations, Commands: commissions.Commands(), Settings: &config,
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return commissions.New(ctx, config, deps)
		},
	})
}
