// Command webhooks runs the webhooks service and the commands of its operator.
package main

import (
	"context"

	"partilha.dev/pkg/service"
	"partilha.dev/services/webhooks"
)

func main() {
	service.Main(service.Program{
		Name: "webhooks", Schemas: webhooks.Migrations, Commands: webhooks.Commands(),
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			var config webhooks.Config
			if err := service.ReadEnvironment(&config); err != nil {
				return nil, err
			}
			return webhooks.New(ctx, config, deps)
		},
	})
}
