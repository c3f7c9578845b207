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
	var retention struct {
		Days int `env:"WEBHOOKS_KEEP_DAYS" envDefault:"30"`
	}
	if err := service.ReadEnvironment(&retention); err != nil {
		fmt.Fprintf(os.Stderr, "webhooks: %v\n", err)
		os.Exit(1)
	}
	service.Main(service.Program{
		Name: "webhooks", Schemas: webhooks.Schemas(retention.Days), Commands: webhooks.Commands(),
		New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			var config webhooks.Config
			if err := service.ReadEnvironment(&config); err != nil {
				return nil, err
			}
			return webhooks.New(ctx, config, deps)
		},
	})
}
