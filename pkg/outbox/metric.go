package outbox

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	published = promauto.NewCounter(prometheus.CounterOpts{
		Name: "partilha_outbox_published_total", Help: "Events that the stream has acknowledged."})
	oldest = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partilha_outbox_oldest_seconds", Help: "Age of the oldest event that is not published."}, []string{"stream"})
	depth = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partilha_outbox_pending", Help: "Events that are not published, counted up to 100000."}, []string{"stream"})
	repairs = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_outbox_repairs_total", Help: "Times that the stream was found to lack events, or may lack them."}, []string{"stream"})
	repaired = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_outbox_repaired_events_total", Help: "Events that repairs have queued to be published again."}, []string{"stream"})
	missed = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_reconcile_missing_total", Help: "Events that a comparison did not find on the stream, and that are published again."}, []string{"stream"})
	compared = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partilha_reconcile_compared_timestamp_seconds", Help: "When this process last compared the outbox with the stream to the end, or saw that another replica had."}, []string{"stream"})
)
