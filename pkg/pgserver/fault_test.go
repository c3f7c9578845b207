package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestWhatWasCommittedSurvivesAKill(t *testing.T) {
	t.Parallel()
	o := Options{Dir: newFolder(t)}
	s := start(t, o)
	execute(t, s, "create table kept (n int)")
	for n := range 20 {
		execute(t, s, "insert into kept values ("+strconv.Itoa(n)+")")
	}
	before := s.Done()

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-before:
	default:
		t.Error("Done is open after Kill")
	}
	if s.Err() == nil {
		t.Error("Err is nil after Kill")
	}
	if err := s.Kill(); err != nil {
		t.Errorf("the second Kill: %v", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, s, "select count(*)::text from kept"); got != "20" {
		t.Errorf("%s rows survived, want 20", got)
	}
	if s.Err() != nil {
		t.Errorf("after Restart Err is %v", s.Err())
	}
}

func TestKillEndsAQueryThatIsRunning(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: newFolder(t), Settings: fast})
	conn := connect(t, s, "postgres")
	var backend int
	if err := conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&backend); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		// It never waits for anything, so it would not notice the postmaster's death.
		_, err := conn.Exec(context.Background(), "do $$ begin loop end loop; end $$")
		failed <- err
	}()
	eventually(t, "the query runs", func() bool {
		return query(t, s, "select count(*)::text from pg_stat_activity where state = 'active' and query like 'do %'") == "1"
	})

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the query came to an end")
	}
	if stateOf(backend).running() {
		t.Errorf("process %d still runs", backend)
	}
}

func TestASecondServerOnALiveFolderIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: newFolder(t), Settings: fast})

	_, err := Start(t.Context(), s.options)

	want := fmt.Sprintf("another server already runs on %s (process %d)", s.options.Dir, s.run.process.PID())
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := query(t, s, "select 'alive'"); got != "alive" {
		t.Errorf("the first server answers %q", got)
	}
}

func TestAServerStartedByHandIsNotDisturbed(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: newFolder(t), Settings: fast})
	// Without its lock the server looks like one that pg_ctl has started.
	if err := os.Rename(s.cluster.lockFile(), s.cluster.lockFile()+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.cluster.lockFile() + ".gone"); err != nil {
		t.Fatal(err)
	}

	_, err := Start(t.Context(), s.options)

	if err == nil || !strings.Contains(err.Error(), "another server already runs on "+s.options.Dir) {
		t.Errorf("got %v", err)
	}
	if got := query(t, s, "select 'alive'"); got != "alive" {
		t.Errorf("the first server answers %q", got)
	}
}

func TestTheMarkOfAKilledServerWhoseNumberIsTakenDoesNotHinderTheNext(t *testing.T) {
	t.Parallel()
	o := Options{Dir: newFolder(t), Settings: fast}
	s := start(t, o)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A process of the server's user, in a folder of its own.
	other := s.cluster.account.command("/", "sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	mark := fmt.Sprintf("%d\n%s\n1700000000\n5432\n/tmp\n\n        1         1\nready   \n", other.Process.Pid, s.cluster.data())
	if err := os.WriteFile(s.cluster.pidFile(), []byte(mark), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.cluster.account.give(s.cluster.pidFile()); err != nil {
		t.Fatal(err)
	}

	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAServerThatIsNotReadyInTimeIsNotLeftRunning(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	s := start(t, Options{Dir: dir, Settings: fast})
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Restart(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	start(t, Options{Dir: dir, Settings: fast})
}

func TestTheServerEndsWhenItsOwnerIsKilled(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	pid, killOwner := startOwner(t, dir)
	if !stateOf(pid).running() {
		t.Fatalf("process %d does not run", pid)
	}

	killOwner()

	// It waits for the end of the orphan and fails if there is none.
	s := start(t, Options{Dir: dir, Settings: fast})
	eventually(t, "the orphan has ended", func() bool { return !stateOf(pid).running() })
	if got := query(t, s, "select answer::text from kept"); got != "42" {
		t.Errorf("read %q, want 42", got)
	}
}

func TestCtrlCInTheTerminalDoesNotReachTheServer(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: newFolder(t), Settings: fast})
	group, err := syscall.Getpgid(s.run.process.PID())
	if err != nil {
		t.Fatal(err)
	}
	if group == syscall.Getpgrp() {
		t.Error("the server is in our process group")
	}
}
