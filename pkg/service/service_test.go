package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestAServiceIsReadyAsLongAsItHasItsDatabase(t *testing.T) {
	t.Parallel()
	server, nats := testkit.Postgres(t), testkit.NATS(t)
	b, err := bus.Connect(bus.Config{URL: nats.URL(), Name: t.Name()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	deps := Deps{Pool: open(t, server.URL("postgres")), Bus: b, Log: zap.NewNop(), Now: time.Now}
	status := func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		ready := deps.Ready(ctx)
		if (len(ready.Reasons) == 0) != (ready.Status == "ready") {
			t.Errorf("%s: reasons %q", ready.Status, ready.Reasons)
		}
		if strings.Contains(fmt.Sprint(ready.Reasons), "outbox") {
			t.Errorf("%q: not every service has one", ready.Reasons)
		}
		return ready.Status
	}
	testkit.Eventually(t, patience, "ready", func() bool { return status() == "ready" })
	nats.Stop()
	testkit.Eventually(t, patience, "degraded", func() bool { return status() == "degraded" })
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != "unavailable" {
		t.Errorf("without a database: %s", got)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	nats.Start()
	testkit.Eventually(t, patience, "ready again", func() bool { return status() == "ready" })
}

func TestPartsRunUntilOneOfThemFails(t *testing.T) {
	defect := errors.New("broken")
	untilTheEnd := func(ctx context.Context) error { <-ctx.Done(); return nil }
	err := RunAll(t.Context(), untilTheEnd, func(context.Context) error { return defect }, untilTheEnd)
	if err != defect {
		t.Errorf("a part fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := RunAll(ctx, untilTheEnd, untilTheEnd); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func TestAPartitionThatCannotBeDroppedDoesNotHoldUpTheStart(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, bus.Schema, shopSchema)
	pool := open(t, url)
	if _, err := pool.Exec(t.Context(), `create table visits_p20010101 partition of visits for values from ('2001-01-01') to ('2001-01-02')`); err != nil {
		t.Fatal(err)
	}
	reader, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback(context.Background())
	if _, err := reader.Exec(t.Context(), "select count(*) from visits"); err != nil {
		t.Fatal(err)
	}
	r := start(t, serveConfig(t, url), func(*shop) {})
	r.stop()
	if err := r.outcome(); err != nil {
		t.Error(err)
	}
}

func TestPartitionsAreMadeAndDroppedAsAServiceStarts(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, bus.Schema, shopSchema)
	pool := open(t, url)
	exists := func(name string) (found bool) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), "select to_regclass($1) is not null", name).Scan(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	ahead := "visits_p" + time.Now().UTC().AddDate(0, 0, 6).Format("20060102")
	if _, err := pool.Exec(t.Context(), `drop table `+ahead+`; create table visits_p20010101 partition of visits for values from ('2001-01-01') to ('2001-01-02')`); err != nil {
		t.Fatal(err)
	}
	start(t, serveConfig(t, url), func(*shop) {})
	if !exists(ahead) {
		t.Error("it answers before there is a place for its rows")
	}
	testkit.Eventually(t, patience, "the end of the old partition", func() bool { return !exists("visits_p20010101") })
}

func TestOnlyWhatIsOldByBothClocksIsDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ahead, day int }{
		"today, where the process is far ahead":                   {400, 0},
		"a day past its time, where the process is as far behind": {-400, -100},
	} {
		pool := open(t, testkit.Database(t, bus.Schema, shopSchema))
		day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, c.day)
		partition := "visits_p" + day.Format("20060102")
		if _, err := pool.Exec(t.Context(), fmt.Sprintf("create table if not exists %s partition of visits for values from ('%s') to ('%s')",
			partition, day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339))); err != nil {
			t.Fatal(err)
		}
		deps := Deps{Pool: pool, Log: zap.NewNop(), Now: func() time.Time { return time.Now().AddDate(0, 0, c.ahead) }}
		if err := deps.maintain(t.Context(), []postgres.Schema{bus.Schema, shopSchema}); err != nil {
			t.Fatal(err)
		}
		var kept bool
		if err := pool.QueryRow(t.Context(), "select to_regclass($1) is not null", partition).Scan(&kept); err != nil || !kept {
			t.Errorf("%s: dropped, %v", name, err)
		}
	}
}
