package postgres_test

import (
	"testing"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestTheUseOfAPoolIsMeasuredUntilItIsForgotten(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), testkit.Database(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	forget := postgres.Measure(t.Name(), pool)
	measured := func(name string) float64 { return testkit.Metric(t, "partilha_pool_"+name, "pool", t.Name()) }
	first, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waitsBefore := measured("waits_total")
	got := make(chan error, 1)
	go func() {
		third, err := pool.Acquire(t.Context())
		if err == nil {
			third.Release()
		}
		got <- err
	}()
	if acquired, idle, most := measured("acquired"), measured("idle"), measured("max"); acquired != 2 || idle != 0 || most != 2 {
		t.Errorf("%v in use, %v idle, %v at most", acquired, idle, most)
	}
	second.Release()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	first.Release()
	testkit.Eventually(t, patience, "both are idle", func() bool { return measured("acquired") == 0 && measured("idle") == 2 })
	if waitsBefore < 0 || measured("waits_total") < waitsBefore || measured("wait_seconds_total") <= 0 {
		t.Errorf("%v waits, then %v, of %v s", waitsBefore, measured("waits_total"), measured("wait_seconds_total"))
	}
	forget()
	if n := measured("max"); n != -1 {
		t.Errorf("a forgotten pool has %v", n)
	}
}
