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
		Name: "partilha_webhook_oldest_ready_seconds", Help: "Age of the oldest event that waits to be sent; also of one that a resend or a replay put back, whose age is counted from the event all the same."})
)

// countEnded counts n deliveries that have ended in the state.
func countEnded(state string, n int) { deliveriesEnded.WithLabelValues(state).Add(float64(n)) }
