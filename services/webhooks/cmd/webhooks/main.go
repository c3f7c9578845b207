// Command webhooks runs the webhooks service and the commands of its operator.
package main

import (
	"context"
	"fmt"
	"os"

	"partilha.dev/pkg/service"
	"partilha.dev/services/webhooks"
)

func main() {
	var config webhooks.Config
	if err := service.ReadEnvironment(&config.Retention); err != nil {
		fmt.Fprintf(os.Stderr, "webhooks: %v\n", err)
		os.Exit(1)
	}
	service.Main(service.Program{
		Name: "webhooks", Schemas: webhooks.Schemas(config.KeepDays), Commands: webhooks.Commands(), Settings: &config,
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return webhooks.New(ctx, config, deps)
		},
	})
}
