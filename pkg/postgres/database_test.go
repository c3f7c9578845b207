package postgres_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// patience is for what must happen, where the time that it takes is not the promise.
const patience = time.Minute

func TestMain(m *testing.M) {
	time.Local = time.FixedZone("far from UTC", -5*60*60-30*60)
	os.Setenv("PGTZ", "Asia/Kathmandu")
	testkit.Main(m)
}

// schema makes a schema whose migrations are these statements, one each.
func schema(name string, migrations ...string) postgres.Schema {
	files := fstest.MapFS{}
	for i, up := range migrations {
		files["0000"+string(rune('1'+i))+"_step.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + up + ";\n")}
	}
	return postgres.Schema{Name: name, FS: files}
}

var things = schema("things", `create table things (id int primary key, name text not null constraint things_named check (name <> ''))`)

// open makes a database with these schemas and a pool on it.
func open(t *testing.T, schemas ...postgres.Schema) *pgxpool.Pool {
	t.Helper()
	return openURL(t, testkit.Database(t, schemas...), 4)
}

func openURL(t *testing.T, url string, size int) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// ask returns the only value that a query finds.
func ask[T any](t *testing.T, pool *pgxpool.Pool, query string, args ...any) (value T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestTimesAreReadInUTC(t *testing.T) {
	t.Parallel()
	pool := open(t)
	const instant = `'2026-07-14 10:02:41.123456-03'::timestamptz`
	want := time.Date(2026, 7, 14, 13, 2, 41, 123456000, time.UTC)
	check := func(what string, got time.Time) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("a value", ask[time.Time](t, pool, "select "+instant))
	check("a value that may be null", *ask[*time.Time](t, pool, "select "+instant))
	check("an element", ask[[]time.Time](t, pool, "select array["+instant+"]")[0])
	check("an unknown type", ask[any](t, pool, "select "+instant).(time.Time))
	check("a parameter", ask[time.Time](t, pool, "select $1::timestamptz", want.Local()))
	check("a parameter in an array", ask[time.Time](t, pool, "select ($1::timestamptz[])[1]", []time.Time{want.Local()}))
	if got := ask[*time.Time](t, pool, "select null::timestamptz"); got != nil {
		t.Errorf("null: %v", got)
	}
}

func TestAPoolHasAtMostItsSize(t *testing.T) {
	t.Parallel()
	pool := openURL(t, testkit.Database(t), 3)
	if got := pool.Config().MaxConns; got != 3 {
		t.Errorf("%d connections", got)
	}
}

func TestAPoolThatCannotConnectIsNone(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"no URL":             "not a URL",
		"nobody listens":     "postgres://someone:hunter2@127.0.0.1:1/shop",
		"no such database":   strings.Replace(testkit.Database(t), "/test_", "/absent_", 1),
		"without connection": "postgres://someone:hunter2@127.0.0.1:1/shop?pool_min_conns=1",
	} {
		pool, err := postgres.Open(t.Context(), url, 2)
		if err == nil {
			pool.Close()
			t.Errorf("%s: a pool", name)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
	if _, err := postgres.Open(t.Context(), testkit.Database(t), 0); err == nil {
		t.Error("a pool without connections")
	}
}
