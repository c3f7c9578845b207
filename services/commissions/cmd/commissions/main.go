// Command commissions runs the commissions service and the commands of its operator.
package main

import (
	"context"

	"partilha.dev/pkg/service"
	"partilha.dev/services/commissions"
)

func main() {
	service.Main(service.Program{
		Name: "commissions", Schemas: commissions.Migrations, Commands: commissions.Commands(),
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			var config commissions.Config
			if err := service.ReadEnvironment(&config); err != nil {
				return nil, err
			}
			return commissions.New(ctx, config, deps)
		},
	})
}
