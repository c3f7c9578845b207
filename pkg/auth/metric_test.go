package auth_test

import (
	"testing"
	"time"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/testkit"
)

// It is not parallel: every copy of this process tells the same metric.
func TestSinceWhenNothingWasHeardOfKeysIsMeasured(t *testing.T) {
	w := worldOn(t, testkit.Database(t, auth.Schema))
	w.announce(newRegistry())
	b := w.bus()
	_, stop := w.copyOf(b)
	heard := func() float64 { return testkit.Metric(t, "partilha_keys_heard_timestamp_seconds", "bucket", "keys") }
	w.clock.forward(time.Hour)
	followed := float64(w.clock.Now().UnixMilli()) / 1000
	testkit.Eventually(t, patience, "the bucket is followed", func() bool { return heard() == followed })
	stop()
	w.nats.Stop()
	w.copyOf(b) // as a restart
	if got := heard(); got != 0 {
		t.Errorf("after a restart without NATS it is heard at %v", got)
	}
	w.nats.Start()
	testkit.Eventually(t, patience, "the bucket is followed after the restart", func() bool { return heard() == followed })
	w.nats.Stop()
	testkit.Eventually(t, patience, "the loss of NATS", func() bool { return !b.Connected() })
	w.clock.forward(time.Hour)
	start := time.Now()
	testkit.Eventually(t, patience, "a second", func() bool {
		if got := heard(); got != followed {
			t.Fatalf("without NATS it is heard at %v, an hour after %v", got, followed)
		}
		return time.Since(start) > time.Second
	})
	w.nats.Start()
	testkit.Eventually(t, patience, "the bucket is followed again", func() bool { return heard() == followed+3600 })
}
