package webhooks

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
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
	for _, table := range []string{"events", "deliveries", "attempts", "day_totals"} {
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
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"events", "deliveries", "attempts", "day_totals"} {
		if !slices.Contains(dropped, table+today) {
			t.Errorf("%s of today is kept though all has ended", table)
		}
	}
}

func TestHowLongTheHistoryIsKeptIsConfigured(t *testing.T) {
	t.Parallel()
	for _, partition := range Schemas(12)[len(Migrations)-1].Partitions {
		if partition.Days != 12 {
			t.Errorf("%s is kept for %d days", partition.Table, partition.Days)
		}
	}
	k := newStack(t)
	who := k.member(uuid.New())
	config := lenient
	config.KeepDays = leastKeepDays - 1
	if _, err := New(t.Context(), config, k.deps()); err == nil {
		t.Error("a history that is shorter than that of receipts is taken")
	}
	config.KeepDays = 12
	s := k.service(config)
	day := func(ago int) string { return dayOf(time.Now()).AddDate(0, 0, -ago).Format(time.DateOnly) }
	k.summary(s, who, "?date="+day(12))
	k.ask(s, who, "GET", eventsPath+"/summary?date="+day(13), "").refused(400, "invalid_parameter")
}

func TestNoMoreDaysAreKeptThanPostgreSQLLocksAtOnce(t *testing.T) {
	for days, want := range map[string]bool{"180": true, "181": false} {
		t.Setenv("WEBHOOKS_KEEP_DAYS", days)
		var got Retention
		if err := service.ReadEnvironment(&got); (err == nil) != want {
			t.Errorf("%s days: %v", days, err)
		}
	}
}
