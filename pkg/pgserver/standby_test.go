package pgserver

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestAStandbyHasEveryAnsweredCommitWhenItsPrimaryIsKilled(t *testing.T) {
	t.Parallel()
	primary := start(t, Options{Dir: newFolder(t)})
	execute(t, primary, "create table kept (n bigint)")
	standby, err := StartStandby(t.Context(), primary, Options{Dir: newFolder(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Kill(); err != nil {
			t.Error(err)
		}
	})
	pool, err := pgxpool.New(t.Context(), WritableURL("postgres", standby, primary))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	const rows = 100
	for n := range rows {
		if _, err := pool.Exec(t.Context(), "insert into kept values ($1)", n); err != nil {
			t.Fatal(err) // as it does where the pool has connected to the standby
		}
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pool has followed", func() bool {
		_, err := pool.Exec(t.Context(), "insert into kept values (-1)")
		return err == nil
	})
	if got := query(t, standby, "select count(*)::text from kept where n >= 0"); got != "100" {
		t.Errorf("%s rows are there, want %d", got, rows)
	}
}
