package pgserver

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ownerFolder, where it is set, makes this test binary an owner that is to be killed.
const ownerFolder = "PGSERVER_TEST_OWNER_OF"

// fast is for tests that no power cut hits.
var fast = map[string]string{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

// newFolder names an absent folder that every user can reach; t.TempDir is root's alone.
func newFolder(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "pgserver-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(parent); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(parent, "cluster")
}

// start stops the server when the test ends.
func start(t *testing.T, o Options) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// eventually fails the test if the condition does not come true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !condition() {
		if ctx.Err() != nil {
			t.Fatalf("never: %s", what)
		}
		pause(ctx)
	}
}

func connect(t *testing.T, s *Server, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, s *Server, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func query(t *testing.T, s *Server, statement string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), statement).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// startOwner starts another process that owns a server on dir, with a row in it.
func startOwner(t *testing.T, dir string) (postmaster int, kill func()) {
	t.Helper()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerFolder+"="+dir)
	owner.Stderr = os.Stderr
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		owner.Process.Kill()
		owner.Wait()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if postmaster, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return postmaster, kill
}

// ownUntilKilled is the other process; it prints the server's number when it is ready.
func ownUntilKilled(dir string) {
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	s, err := Start(ctx, Options{Dir: dir, Settings: fast})
	fail(err)
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	fail(err)
	_, err = conn.Exec(ctx, "create table kept as select 42 as answer")
	fail(err)
	fmt.Println(s.run.process.PID())
	<-s.Done()
}
