package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

const dailyTables = `
	create table daily (at timestamptz not null, id int not null, note text not null default 'none' check (note <> ''), primary key (at, id)) partition by range (at);
	create index daily_id on daily (id);
	create table daily_pending (at timestamptz primary key)`

// daily is a schema with a table that keeps so many days.
func daily(days int) postgres.Schema {
	s := schema("daily", dailyTables)
	s.Partitions = []postgres.Partition{{Table: "daily", Days: days}}
	return s
}

// partitions are the days that the table holds, oldest first.
func partitions(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	names := ask[[]string](t, pool, `select coalesce(array_agg(inhrelid::regclass::text order by inhrelid::regclass::text), '{}') from pg_inherits where inhparent = 'daily'::regclass`)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "daily_p")
	}
	return names
}

func today() time.Time { return time.Now().UTC().Truncate(24 * time.Hour) }

func days(from, to int) (names []string) {
	for d := from; d <= to; d++ {
		names = append(names, today().AddDate(0, 0, d).Format("20060102"))
	}
	return names
}

func TestEveryDayThatIsKeptAndTheComingWeekHaveAPartition(t *testing.T) {
	t.Parallel()
	pool := open(t, daily(2))
	for range 2 {
		if err := postgres.EnsurePartitions(t.Context(), pool, daily(2).Partitions); err != nil {
			t.Fatal(err)
		}
		if got, want := partitions(t, pool), days(-2, 7); !slices.Equal(got, want) {
			t.Errorf("partitions %v, want %v", got, want)
		}
	}
	first, last := today().AddDate(0, 0, -2), today().AddDate(0, 0, 8).Add(-time.Microsecond)
	for at := first; at.Before(last); at = at.Add(8 * time.Hour) {
		exec(t, pool, "insert into daily (at, id) values ($1, 1)", at)
	}
	exec(t, pool, "insert into daily (at, id) values ($1, 1)", last)
	for _, at := range []time.Time{first.Add(-time.Microsecond), last.Add(time.Microsecond)} {
		_, err := pool.Exec(t.Context(), "insert into daily (at, id) values ($1, 1)", at)
		if !postgres.NoPartition(err) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if got := ask[string](t, pool, "select distinct note from daily"); got != "none" {
		t.Errorf("a default is lost: %q", got)
	}
	if _, err := pool.Exec(t.Context(), "insert into daily values ($1, 2, '')", first); !postgres.Violates(err, "daily_note_check") {
		t.Errorf("a constraint is lost: %v", err)
	}
	if _, err := pool.Exec(t.Context(), "insert into daily (at, id) values ($1, 1)", first); err == nil {
		t.Error("the primary key is lost")
	}
}

func TestWhereTheClocksDifferBothHaveTheirDays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ahead int // days that the process's clock is ahead of the database's
		want  []string
	}{
		"the process's clock is ahead":  {40, append(days(-2, 7), days(38, 47)...)},
		"the process's clock is behind": {-40, append(days(-42, -33), days(-2, 7)...)},
		"by a day, as about midnight":   {1, days(-2, 8)},
	} {
		pool := open(t, schema("daily", dailyTables))
		if err := postgres.EnsurePartitionsAt(t.Context(), pool, daily(2).Partitions, time.Now().AddDate(0, 0, c.ahead)); err != nil {
			t.Fatal(err)
		}
		if got := partitions(t, pool); !slices.Equal(got, c.want) {
			t.Errorf("%s: partitions %v, want %v", name, got, c.want)
		}
	}
}

func TestSeveralProcessesMayMakePartitionsAtOnce(t *testing.T) {
	t.Parallel()
	pool := open(t, schema("daily", dailyTables))
	results := make(chan error)
	const processes = 4
	for range processes {
		go func() { results <- postgres.EnsurePartitions(t.Context(), pool, daily(5).Partitions) }()
	}
	for range processes {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := len(partitions(t, pool)); got != 5+1+7 {
		t.Errorf("%d partitions, want 13", got)
	}
}

func TestADayIsDroppedWhenItsTimeIsPastAndNoEarlier(t *testing.T) {
	t.Parallel()
	pool := open(t, daily(2))
	exec(t, pool, "insert into daily (at, id) select at, 1 from generate_series($1::timestamptz, $2, '1 day') as at", today().AddDate(0, 0, -2), today().AddDate(0, 0, 7))
	for _, c := range []struct {
		at   time.Time
		want []string
	}{
		{today(), nil},
		{today().Add(24*time.Hour - time.Nanosecond), nil},
		{today().Add(24 * time.Hour), []string{"daily_p" + days(-2, -2)[0]}},
		{today().Add(24 * time.Hour), nil},
		{today().AddDate(0, 0, 3).In(time.FixedZone("ahead", 14*60*60)), []string{"daily_p" + days(-1, -1)[0], "daily_p" + days(0, 0)[0]}},
	} {
		dropped, err := postgres.DropPartitions(t.Context(), pool, daily(2).Partitions, c.at)
		slices.Sort(dropped)
		if err != nil || !slices.Equal(dropped, c.want) {
			t.Errorf("at %s: dropped %v, want %v; %v", c.at, dropped, c.want, err)
		}
	}
	if got := ask[int](t, pool, "select count(*) from daily"); got != 7 {
		t.Errorf("%d rows are left, want 7", got)
	}
}

func TestADayThatIsStillNeededIsNotDroppedNorAnyAfterIt(t *testing.T) {
	t.Parallel()
	pool := open(t, daily(2))
	tables := daily(2).Partitions
	tables[0].KeepWhile = "select exists (select from daily_pending where at >= $1 and at < $2)"
	needed := today().AddDate(0, 0, -1)
	later := today().AddDate(0, 0, 5)
	drop := func(want ...string) {
		t.Helper()
		dropped, err := postgres.DropPartitions(t.Context(), pool, tables, later)
		slices.Sort(dropped)
		if err != nil || !slices.Equal(dropped, want) {
			t.Errorf("dropped %v, want %v; %v", dropped, want, err)
		}
	}
	exec(t, pool, "insert into daily_pending values ($1), ($2), ($3)", needed, needed.Add(12*time.Hour), needed.Add(24*time.Hour-time.Microsecond))
	name := func(d int) string { return "daily_p" + days(d, d)[0] }
	drop(name(-2))
	exec(t, pool, "delete from daily_pending where at > $1 and at < $2", needed, needed.Add(20*time.Hour))
	drop()
	exec(t, pool, "delete from daily_pending where at = $1", needed)
	drop()
	exec(t, pool, "delete from daily_pending")
	drop(name(-1), name(0), name(1), name(2))
}

func TestAQuestionThatCannotBeAskedDropsNothing(t *testing.T) {
	t.Parallel()
	pool := open(t, daily(2))
	tables := daily(2).Partitions
	tables[0].KeepWhile = "select exists (select from nothing where at >= $1 and at < $2)"
	if dropped, err := postgres.DropPartitions(t.Context(), pool, tables, today().AddDate(1, 0, 0)); err == nil || len(dropped) > 0 {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if got := len(partitions(t, pool)); got != 10 {
		t.Errorf("%d partitions are left, want 10", got)
	}
}

func TestDroppingWaitsForReadersButNotForLong(t *testing.T) {
	t.Parallel()
	pool := open(t, daily(2))
	reader, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback(context.Background())
	if _, err := reader.Exec(t.Context(), "select count(*) from daily"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = postgres.DropPartitions(t.Context(), pool, daily(2).Partitions, today().AddDate(1, 0, 0))
	unavailable(t, "a table that is being read", err)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("everybody behind it waited for %s", took)
	}
}

func TestOtherTablesThatInheritAreLeftAlone(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, daily(2))
	pool := openURL(t, url, 2)
	exec(t, pool, "create table daily_archive partition of daily for values from ('2001-01-01') to ('2002-01-01')")
	dropped, err := postgres.DropPartitions(t.Context(), pool, daily(2).Partitions, today())
	if err != nil || len(dropped) > 0 {
		t.Errorf("dropped %v, %v", dropped, err)
	}
}
