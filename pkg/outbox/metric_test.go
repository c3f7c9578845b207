package outbox_test

import (
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
)

// These are not parallel: relays of other tests would tell of the same stream.

func TestWhatIsPendingAndSinceWhenIsMeasured(t *testing.T) {
	w := newWorld(t)
	w.nats.Stop()
	r := w.start()
	measured := func(events int, least, most time.Duration) {
		t.Helper()
		var pending, seconds float64
		within := func() bool {
			pending, seconds = testkit.Metric(t, "partilha_outbox_pending", "stream", "SALES"), testkit.Metric(t, "partilha_outbox_oldest_seconds", "stream", "SALES")
			return pending == float64(events) && seconds >= least.Seconds() && seconds <= most.Seconds()
		}
		testkit.Eventually(t, soon, "what is pending is measured", within)
	}
	measured(0, 0, 0)
	w.add(r, saleAt(t, "old", time.Now().Add(-10*time.Minute)), sale(t, "new"), sale(t, "newer"))
	measured(3, 10*time.Minute, 11*time.Minute)
	w.nats.Start()
	measured(0, 0, 0)
}

func TestARepairIsCountedWithItsEvents(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.logOnly(sales(t, 7)...)
	w.awaitChecked()
	counted := func(name string) float64 { return testkit.Metric(t, name, "stream", "SALES") }
	repairs, events := counted("partilha_outbox_repairs_total"), counted("partilha_outbox_repaired_events_total")
	w.nats.Stop()
	w.nats.Wipe()
	w.nats.Start()
	testkit.Eventually(t, soon, "one repair of seven events is counted", func() bool {
		return counted("partilha_outbox_repairs_total") == repairs+1 && counted("partilha_outbox_repaired_events_total") == events+7
	})
}

func TestTheAgeOfTheLastComparisonIsMeasuredWhereNothingIsCompared(t *testing.T) {
	w := newOffline(t)
	w.nats = testkit.NATS(t)
	w.bus = w.connect()
	compared := func() int64 {
		return int64(testkit.Metric(t, "partilha_reconcile_compared_timestamp_seconds", "stream", "SALES"))
	}
	begun := time.Now().Unix()
	w.start()
	testkit.Eventually(t, soon, "the process's start is measured", func() bool { return compared() >= begun })
	last := time.Now().Add(-time.Hour)
	testkit.Eventually(t, soon, "the stream is looked at", func() bool { return w.ask(`select count(*) from outbox_stream`) == 1 })
	w.exec(`update outbox_stream set compared_at = $1`, last)
	w.start()
	testkit.Eventually(t, soon, "what is stored is measured", func() bool { return compared() == last.Unix() })
	w.exec(`update outbox_stream set compared_at = $1`, time.Now().Add(time.Hour))
	w.start()
	testkit.Eventually(t, soon, "what is to come is not", func() bool { return compared() >= begun && compared() <= time.Now().Unix() })
}
