package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestMigratingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	for range 2 {
		if err := postgres.Migrate(t.Context(), url, things, daily(3)); err != nil {
			t.Fatal(err)
		}
	}
	pool := openURL(t, url, 2)
	if got := ask[int](t, pool, "select count(*) from schema_version_things where version_id > 0"); got != 1 {
		t.Errorf("%d versions, want 1", got)
	}
	if got := len(partitions(t, pool)); got != 3+1+7 {
		t.Errorf("%d partitions, want 11", got)
	}
}

func TestSeveralProcessesMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	const first = "create table runs (id int)"
	migrate(t, url, schema("slow", first), schema("daily", dailyTables))
	slow := schema("slow", first, "insert into runs values (1); select pg_sleep(0.5)")
	results := make(chan error)
	start := time.Now()
	for range 3 {
		go func() { results <- postgres.Migrate(t.Context(), url, slow, daily(3)) }()
	}
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(start); took > patience {
		t.Errorf("they waited for each other for %s", took)
	}
	if err := postgres.CheckMigrated(t.Context(), url, slow, daily(3)); err != nil {
		t.Error(err)
	}
	if got := ask[int](t, openURL(t, url, 1), "select count(*) from runs"); got != 1 {
		t.Errorf("the migration ran %d times", got)
	}
}

func TestADatabaseThatIsBehindIsNoticedByName(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	first, more := schema("things", "create table a (id int)"), schema("things", "create table a (id int)", "create table b (id int)")
	other := schema("others", "create table c (id int)")
	behind := func(schemas ...postgres.Schema) string {
		t.Helper()
		err := postgres.CheckMigrated(t.Context(), url, schemas...)
		if err != nil && !errors.Is(err, postgres.ErrPending) {
			t.Fatal(err)
		}
		if err == nil {
			return ""
		}
		_, names, _ := strings.Cut(err.Error(), "(")
		names, _, _ = strings.Cut(names, ")")
		return names
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: behind is %q, want %q", what, got, want)
		}
	}
	expect("an empty database", behind(first, other), "things, others")
	migrate(t, url, first)
	expect("one of two", behind(first, other), "others")
	migrate(t, url, other)
	expect("both", behind(first, other), "")
	expect("a newer binary", behind(more, other), "things")
	migrate(t, url, more, other)
	expect("a newer binary that migrated", behind(more, other), "")
	expect("an older binary", behind(first, other), "")
}

func migrate(t *testing.T, url string, schemas ...postgres.Schema) {
	t.Helper()
	if err := postgres.Migrate(t.Context(), url, schemas...); err != nil {
		t.Fatal(err)
	}
}

func TestAMigrationThatFailsNamesItsSchemaAndLeavesNothing(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	broken := schema("broken", "create table half (id int); create table half (id int)")
	if err := postgres.Migrate(t.Context(), url, broken); err == nil || !strings.Contains(err.Error(), "migrate broken") {
		t.Error(err)
	}
	if got := ask[*string](t, openURL(t, url, 1), "select to_regclass('half')::text"); got != nil {
		t.Error("half of a migration stays")
	}
	if err := postgres.CheckMigrated(t.Context(), url, broken); !errors.Is(err, postgres.ErrPending) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestWithoutADatabaseNothingIsPendingAndNothingIsMigrated(t *testing.T) {
	t.Parallel()
	const nowhere = "postgres://nobody@127.0.0.1:1/none"
	if err := postgres.CheckMigrated(t.Context(), nowhere, things); err == nil || errors.Is(err, postgres.ErrPending) {
		t.Errorf("check: %v", err)
	}
	if err := postgres.Migrate(t.Context(), nowhere, things); err == nil {
		t.Error("migrate: no error")
	}
}
