package webhooks

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/postgres"
)

func TestADayOfWhichSomethingIsStillToBeSentIsKept(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*")
	now := time.Now()
	k.fanOut(s, joined(t, who.tenant, now))
	partitions := Migrations[len(Migrations)-1].Partitions
	later := now.AddDate(0, 2, 0)
	today := "_p" + now.UTC().Format("20060102")

	dropped, err := postgres.DropPartitions(t.Context(), k.pool, partitions, later)
	if err != nil || len(dropped) == 0 {
		t.Fatalf("dropped %v, %v", dropped, err)
	}
	for _, table := range []string{"events", "deliveries", "attempts"} {
		if slices.Contains(dropped, table+today) {
			t.Errorf("%s of today is dropped though a delivery waits", table)
		}
	}

	k.exec("update endpoints set disabled_reason = 'a test'")
	if err := s.sweeper.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := k.inState(stateSkipped); n != 1 {
		t.Fatalf("%d are skipped, want the one that waited", n)
	}
	dropped, err = postgres.DropPartitions(t.Context(), k.pool, partitions, later)
	if want := []string{"attempts" + today, "deliveries" + today, "events" + today}; err != nil || !slices.Equal(slices.Sorted(slices.Values(dropped)), want) {
		t.Errorf("once it has ended %v is dropped, want %v; %v", dropped, want, err)
	}
}
