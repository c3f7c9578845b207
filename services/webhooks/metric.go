package webhooks

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	deliveriesEnded = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_webhook_deliveries_total", Help: "Deliveries by what became of them."}, []string{"result"})
	attemptsPostponed = promauto.NewCounter(prometheus.CounterOpts{
		Name: "partilha_webhook_retries_total", Help: "Attempts that failed and are made again later."})
	attemptSeconds = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "partilha_webhook_attempt_seconds", Help: "Time from the begin of an attempt to the response head, or to its failure.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}})
	inFlight = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "partilha_webhook_in_flight", Help: "Deliveries that are claimed and not recorded yet."})
	oldestReady = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "partilha_webhook_oldest_ready_seconds", Help: "How long what is sent next has waited since it was made, or since somebody had it sent again; of the endpoint where that is longest, and not of those that are slowed."})
)

func init() {
	for _, state := range []string{stateDelivered, stateFailed, stateUnknown, stateSkipped} {
		deliveriesEnded.WithLabelValues(state) // a first failure shows as a rise from 0
	}
}

// countEnded counts n deliveries that have ended in the state.
func countEnded(state string, n int) { deliveriesEnded.WithLabelValues(state).Add(float64(n)) }
