package pgserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unreachable names an absent folder that root alone can reach.
func unreachable(t *testing.T) string {
	t.Helper()
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "clone", "cluster")
	t.Cleanup(func() {
		if home, err := filepath.EvalSymlinks(dir); err == nil {
			if err := os.RemoveAll(home); err != nil {
				t.Error(err)
			}
		}
	})
	return dir
}

func TestAFolderThatTheServersUserCannotReachWorks(t *testing.T) {
	t.Parallel()
	dir := unreachable(t)
	first := start(t, Options{Dir: dir, Settings: fast})
	execute(t, first, "create table kept as select 42 as answer")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := start(t, Options{Dir: dir, Settings: fast})

	if got := query(t, second, "select answer::text from kept"); got != "42" {
		t.Errorf("read %q, want 42", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "PG_VERSION")); err != nil {
		t.Error(err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if far := info.Mode()&os.ModeSymlink != 0; far != (os.Geteuid() == 0) {
		t.Errorf("as user %d the folder has mode %v", os.Geteuid(), info.Mode())
	}
}

func TestAnEmptyUnreachableFolderIsUsedToo(t *testing.T) {
	t.Parallel()
	dir := unreachable(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start(t, Options{Dir: dir, Settings: fast})
}

func TestRemovingTheFolderBeginsAnew(t *testing.T) {
	t.Parallel()
	dir := unreachable(t)
	s := start(t, Options{Dir: dir, Settings: fast})
	execute(t, s, "create table kept ()")
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}

	s = start(t, Options{Dir: dir, Settings: fast})

	if got := query(t, s, "select coalesce(to_regclass('kept')::text, 'gone')"); got != "gone" {
		t.Errorf("the table is %s", got)
	}
}

func TestALiveServerSurvivesTheRemovalOfItsLink(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root has such links
	}
	dir := unreachable(t)
	s := start(t, Options{Dir: dir, Settings: fast})
	home := s.cluster.home
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}

	_, err := Start(t.Context(), s.options)

	if err == nil || !strings.Contains(err.Error(), "another server already runs on "+dir) {
		t.Errorf("got %v", err)
	}
	if got := query(t, s, "select 'alive'"); got != "alive" {
		t.Errorf("the server answers %q", got)
	}
	if err := os.Symlink(home, dir); err != nil { // so that the cleanup finds it
		t.Fatal(err)
	}
}
