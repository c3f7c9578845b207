package service

import (
	"testing"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/testkit"
)

// It is not parallel: other tests serve the same shop.
func TestAServiceMeasuresItsPoolItsPartitionsAndWhatIsParked(t *testing.T) {
	url := testkit.Database(t, bus.Schema, shopSchema)
	began := time.Now()
	pool := open(t, url)
	_, err := pool.Exec(t.Context(), `insert into parked_events (consumer, event_id, name, tenant_id, body, reason)
		values ('shop-hear', gen_random_uuid(), 'goal.reached', gen_random_uuid(), '', 'a test')`)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, serveConfig(t, url), func(*shop) {})
	testkit.Eventually(t, patience, "the parked event is measured", func() bool {
		return testkit.Metric(t, "partilha_parked_events", "consumer", "shop-hear") == 1
	})
	if most := testkit.Metric(t, "partilha_pool_max", "pool", "shop"); most != 4 {
		t.Errorf("the pool may have %v connections, want 4", most)
	}
	testkit.Eventually(t, patience, "the partitions are as they should be", func() bool {
		return testkit.Metric(t, "partilha_partitions_maintained_timestamp_seconds", "schema", "shop") >= float64(began.Unix())
	})
	r.stop()
	if err := r.outcome(); err != nil {
		t.Fatal(err)
	}
	if most := testkit.Metric(t, "partilha_pool_max", "pool", "shop"); most != -1 {
		t.Errorf("after the end the pool is still told of: %v", most)
	}
}
