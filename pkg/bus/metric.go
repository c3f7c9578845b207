package bus

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	handled = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_events_handled_total", Help: "Events whose effects are committed."}, []string{"consumer"})
	retried = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_events_retried_total", Help: "Events that failed and come again."}, []string{"consumer"})
	parked = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_events_parked_total", Help: "Events that wait for an operator."}, []string{"consumer"})
	lag = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partilha_consumer_lag", Help: "Events in the stream that this consumer has not been given."}, []string{"consumer"})
)
