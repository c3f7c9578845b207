package web

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var requests = promauto.NewHistogramVec(prometheus.HistogramOpts{
	Name: "partilha_http_request_seconds", Help: "Time from a request's head to its answer.",
	Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
}, []string{"method", "route", "status"})

// measureRoute returns what records a route's answers.
func measureRoute(method, pattern string) func(status int, took time.Duration) {
	route := requests.MustCurryWith(prometheus.Labels{"method": method, "route": pattern})
	return func(status int, took time.Duration) {
		route.WithLabelValues(strconv.Itoa(status)).Observe(took.Seconds())
	}
}
