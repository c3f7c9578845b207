package pgserver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerFolder); dir != "" {
		ownUntilKilled(dir)
	}
	os.Exit(m.Run())
}

func TestDataSurviveAStopAndTheNextStart(t *testing.T) {
	t.Parallel()
	o := Options{Dir: newFolder(t), Settings: fast}
	first := start(t, o)
	execute(t, first, "create table kept as select 42 as answer")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Err(); err != nil {
		t.Errorf("a clean stop left the error %v", err)
	}

	second := start(t, o)
	if got := query(t, second, "select answer::text from kept"); got != "42" {
		t.Errorf("read %q, want 42", got)
	}
	if first.URL("postgres") != second.URL("postgres") {
		t.Errorf("the URL changed from %s to %s", first.URL("postgres"), second.URL("postgres"))
	}
}

func TestStoppingTwiceIsNoError(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: newFolder(t), Settings: fast})
	for range 2 {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestCreatingADatabaseTwiceKeepsWhatIsInIt(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: newFolder(t), Settings: fast})
	const name = `odd "name"`
	if err := s.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, s, name).Exec(t.Context(), "create table kept ()"); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, s, name).Exec(t.Context(), "select from kept"); err != nil {
		t.Error(err)
	}
}

func TestNothingListensOnTheNetwork(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: newFolder(t), Settings: fast})
	if got := query(t, s, "select current_setting('listen_addresses')"); got != "" {
		t.Errorf("listens on %s", got)
	}
	hosts := query(t, s, "select string_agg(distinct auth_method, ',') from pg_hba_file_rules where type <> 'local'")
	if hosts != "reject" {
		t.Errorf("connections over the network are answered with %s, want reject", hosts)
	}
	info, err := os.Stat(s.run.socket)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder has mode %v", info.Mode())
	}
	if uid, _ := owner(info); uid != s.cluster.account.uid {
		t.Errorf("the socket's folder belongs to %d, the server to %d", uid, s.cluster.account.uid)
	}
}

func TestPostgreSQLsOwnDurabilityHoldsUnlessSettingsSayOtherwise(t *testing.T) {
	t.Parallel()
	const durability = `select string_agg(current_setting(name), ' ' order by name)
		from unnest(array['fsync', 'full_page_writes', 'synchronous_commit']) name`
	o := Options{Dir: newFolder(t)}
	s := start(t, o)
	if got := query(t, s, durability); got != "on on on" {
		t.Errorf("got %s, want all on", got)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Settings = fast
	if got := query(t, start(t, o), durability); got != "off off off" {
		t.Errorf("got %s, want all off", got)
	}
}

func TestASettingThatPostgreSQLRefusesIsNamed(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Dir: newFolder(t), Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one sentence with the setting", err)
	}
}

func TestAFolderWithSomethingElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	if err := os.MkdirAll(filepath.Join(dir, "photos"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "photos") {
		t.Errorf("got %v, want a refusal that names what is there", err)
	}
}

func TestTheLogIsCopiedAndHoldsNoValuesOfRows(t *testing.T) {
	t.Parallel()
	logged := &bytes.Buffer{}
	s := start(t, Options{Dir: newFolder(t), Settings: fast, Log: logged})
	execute(t, s, "create table once (ref text primary key)")
	execute(t, s, "insert into once values ('a secret')")
	if _, err := connect(t, s, "postgres").Exec(t.Context(), "insert into once values ('a secret')"); err == nil {
		t.Fatal("a duplicate was accepted")
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	file, err := os.ReadFile(s.cluster.logFile())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(file, []byte("duplicate key")) || !bytes.Equal(file, logged.Bytes()) {
		t.Errorf("the file has %q\nand the copy %q", file, logged)
	}
	if bytes.Contains(file, []byte("a secret")) {
		t.Errorf("the log shows a value: %s", file)
	}
}

func TestTheEnvironmentOfTheServerIsTheCallers(t *testing.T) {
	t.Setenv("PGDATA", "/nowhere")
	s := start(t, Options{Dir: newFolder(t), Settings: fast, Env: []string{"EXTRA=there"}})
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.run.process.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(environ, []byte("EXTRA=there\x00")) || bytes.Contains(environ, []byte("PGDATA=/nowhere")) {
		t.Errorf("the server's environment is %q", environ)
	}
}
