// Command goals runs the goals service.
package main

import (
	"context"

	"partilha.dev/pkg/service"
	"partilha.dev/services/goals"
)

func main() {
	service.Main(service.Program{
		Name:    "goals",
		Schemas: goals.Migrations,
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			var config goals.Config
			if err := service.ReadEnvironment(&config); err != nil {
				return nil, err
			}
			return goals.New(ctx, config, deps)
		},
	})
}
