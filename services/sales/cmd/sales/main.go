// Command sales runs the sales service, or does one thing for its operator.
package main

import (
	"context"

	"partilha.dev/pkg/service"
	"partilha.dev/services/sales"
)

func main() {
	var config sales.Config
	service.Main(service.Program{
		Name: "sales", Schemas: sales.Migrations, Commands: sales.Commands(), Settings: &config,
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return sales.New(ctx, config, deps)
		},
	})
}
