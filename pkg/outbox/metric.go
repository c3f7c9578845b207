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
)
