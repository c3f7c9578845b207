package service

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
)

var maintained = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Name: "partilha_partitions_maintained_timestamp_seconds", Help: "When the days' partitions were last made and dropped."}, []string{"schema"})

// noteMaintained tells that the schemas' partitions are as they should be.
func noteMaintained(schemas []postgres.Schema) {
	for _, schema := range schemas {
		maintained.WithLabelValues(schema.Name).SetToCurrentTime()
	}
}

const measureEvery = 15 * time.Second

// Measure tells the use of the service's pool, and what its consumers have parked, which
// it counts at once and then every 15 s until ctx ends.
func (d Deps) Measure(name string, consumers []bus.Consumer) func(context.Context) error {
	return func(ctx context.Context) error {
		defer postgres.Measure(name, d.Pool)()
		if len(consumers) == 0 {
			<-ctx.Done()
			return nil
		}
		tick := time.NewTicker(measureEvery)
		defer tick.Stop()
		for {
			if err := bus.MeasureParked(ctx, d.Pool, consumers); err != nil && ctx.Err() == nil {
				d.Log.Warn("cannot measure", zap.Error(err))
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}
