// Command goals runs the goals service.
package main

import (
	"context"

	"partilha.dev/pkg/service"
	"partilha.dev/services/goals"
)

func main() {
	var config goals.Config
	service.Main(service.Program{
		Name: "goals", Schemas: goals.Migrations, Settings: &config,
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return goals.New(ctx, config, deps)
		},
	})
}
