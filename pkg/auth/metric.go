package auth

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// It has a label so that a service without a copy tells nothing.
var heardAt = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Name: "partilha_keys_heard_timestamp_seconds", Help: "When the bucket of keys was last known to be followed; 0: not since the start."}, []string{"bucket"})

// noteUnheard shows a start as what has never been heard, or an outage would look mended
// by every restart.
func noteUnheard() { heardAt.WithLabelValues(bucketName).Set(0) }

func noteHeard(at time.Time) {
	heardAt.WithLabelValues(bucketName).Set(float64(at.UnixMilli()) / 1000)
}
