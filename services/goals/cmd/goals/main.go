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
			return goals.New(ctx, goals.Config{}, deps)
		},
	})
}
