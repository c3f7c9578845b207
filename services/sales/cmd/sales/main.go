// Command sales runs the sales service, or does one thing for its operator.
package main

import (
	"context"

	"partilha.dev/pkg/service"
	"partilha.dev/services/sales"
)

func main() {
	service.Main(service.Program{
		Name: "sales", Schemas: sales.Migrations, Commands: sales.Commands(),
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			var config sales.Config
			if err := service.ReadEnvironment(&config); err != nil {
				return nil, err
			}
			return sales.New(ctx, config, deps)
		},
	})
}
