package bus

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	connected = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partilha_nats_connected", Help: "1 while NATS can be reached, 0 while not."}, []string{"client"})
	handled = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_events_handled_total", Help: "Events whose effects are committed."}, []string{"consumer"})
	retried = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_events_retried_total", Help: "Events that failed and come again."}, []string{"consumer"})
	parked = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_events_parked_total", Help: "Events that were parked."}, []string{"consumer"})
	waiting = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partilha_parked_events", Help: "Events that are parked and wait for an operator, counted up to 10000 in all."}, []string{"consumer"})
	lag = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partilha_consumer_lag", Help: "Events in the stream that this consumer has not been given."}, []string{"consumer"})
	differing = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partilha_reconcile_windows_differing", Help: "Windows of which this consumer has not what the stream's owner has told."}, []string{"stream", "consumer"})
)

// countUpTo bounds what it costs to count what is parked.
const countUpTo = 10_000

const countParkedQuery = `select consumer, count(*) from (select consumer from parked_events where dropped_at is null limit $1) counted group by consumer`

// MeasureParked counts what waits for an operator, for each of the consumers, into
// their metric.
func MeasureParked(ctx context.Context, pool *pgxpool.Pool, consumers []Consumer) error {
	rows, err := pool.Query(ctx, countParkedQuery, countUpTo)
	if err != nil {
		return fmt.Errorf("count parked events: %w", err)
	}
	counts := map[string]int{}
	var name string
	var events int
	_, err = pgx.ForEachRow(rows, []any{&name, &events}, func() error { counts[name] = events; return nil })
	if err != nil {
		return fmt.Errorf("count parked events: %w", err)
	}
	for _, c := range consumers {
		waiting.WithLabelValues(c.Name).Set(float64(counts[c.Name]))
	}
	return nil
}
