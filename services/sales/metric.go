package sales

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var groupSize = promauto.NewHistogram(prometheus.HistogramOpts{
	Name: "partilha_sales_group_size", Help: "Sales in one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 10)})
