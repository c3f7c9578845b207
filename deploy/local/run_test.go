package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is the binary under test, built once.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "partilha-local-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		program = filepath.Join(folder, "partilha")
		if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			panic(string(out))
		}
		return m.Run()
	}())
}

// stackUnderTest is a running program.
type stackUnderTest struct {
	t      *testing.T
	cmd    *exec.Cmd
	output *bytes.Buffer // all of it, once ended is closed
	lines  chan string
	ended  chan error
}

// launch starts the program with these variables, NAME=value, and nothing of ours but PATH
// and HOME.
func launch(t *testing.T, variables ...string) *stackUnderTest {
	t.Helper()
	s := &stackUnderTest{t: t, output: &bytes.Buffer{}, lines: make(chan string, 1000), ended: make(chan error, 1)}
	s.cmd = exec.Command(program)
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, variables...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	reader, writer := io.Pipe()
	s.cmd.Stdout, s.cmd.Stderr = writer, writer
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scanned := make(chan struct{})
	go func() {
		defer close(scanned)
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			s.output.WriteString(scanner.Text() + "\n")
			s.lines <- scanner.Text()
		}
	}()
	go func() {
		err := s.cmd.Wait()
		writer.Close()
		<-scanned
		s.ended <- err
	}()
	t.Cleanup(func() { s.cmd.Process.Kill() })
	return s
}

// until returns the first line that matches, or fails the test.
func (s *stackUnderTest) until(pattern string) []string {
	s.t.Helper()
	wanted := regexp.MustCompile(pattern)
	timeout := time.After(time.Minute)
	for {
		select {
		case line := <-s.lines:
			if found := wanted.FindStringSubmatch(line); found != nil {
				return found
			}
		case err := <-s.ended:
			s.t.Fatalf("ended (%v) before it said %s:\n%s", err, pattern, s.output)
		case <-timeout:
			s.t.Fatalf("did not say %s in time", pattern)
		}
	}
}

// end waits until the program has ended by itself and returns its status.
func (s *stackUnderTest) end() int {
	s.t.Helper()
	select {
	case err := <-s.ended:
		var status *exec.ExitError
		if errors.As(err, &status) {
			return status.ExitCode()
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return 0
	case <-time.After(time.Minute):
		s.t.Fatal("does not end")
		return -1
	}
}

// interrupt does what Ctrl-C does.
func (s *stackUnderTest) interrupt() int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	return s.end()
}

// wantOneSentence wants a failure that is told in one line.
func (s *stackUnderTest) wantOneSentence(pattern string) {
	s.t.Helper()
	if status := s.end(); status != 1 {
		s.t.Errorf("ended with status %d, want 1:\n%s", status, s.output)
	}
	said := strings.TrimSpace(s.output.String())
	if strings.Contains(said, "\n") || !regexp.MustCompile(pattern).MatchString(said) {
		s.t.Errorf("said %q, want one line like %s", said, pattern)
	}
}

func TestTheDemoFollowsOneSaleToItsWebhook(t *testing.T) {
	t.Parallel()
	data := newDataDir(t)
	for _, start := range []string{"the first", "the second, on the same data"} {
		s := launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+data, "DEMO=exit")
		if status := s.end(); status != 0 {
			t.Fatalf("%s start ended with status %d:\n%s", start, status, s.output)
		}
		for _, step := range []string{"201 Created", "sale.recorded", "commission  ", "goal  ", "signature verified"} {
			if !strings.Contains(s.output.String(), step) {
				t.Errorf("%s start did not tell of %q:\n%s", start, step, s.output)
			}
		}
	}
}

func TestItStaysUpUntilItIsInterruptedAndKeepsItsData(t *testing.T) {
	t.Parallel()
	data := newDataDir(t)
	first := launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+data)
	first.until(`Webhooks may go to http and any port on this machine, and otherwise only to public https addresses\.`)
	url := first.until(`base URL +(\S+)`)[1]
	token := first.until(`admin token +(\S+)`)[1]
	key := first.until(`demo key +(\S+)`)[1]
	if got := status(t, "GET", url+"/api/v1/sales", key); got != 200 {
		t.Errorf("the printed key is answered %d", got)
	}
	if got := status(t, "GET", url+"/admin/v1/tenants", token); got != 200 {
		t.Errorf("the printed admin token is answered %d", got)
	}
	if got := status(t, "GET", url+"/readyz", ""); got != 200 {
		t.Errorf("/readyz is answered %d", got)
	}
	info, err := os.Stat(filepath.Join(data, "admin-token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the admin token is kept as %v, %v", info, err)
	}
	if code := first.interrupt(); code != 0 {
		t.Errorf("Ctrl-C ended it with status %d:\n%s", code, first.output)
	}

	second := launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+data, "WEBHOOKS_ALLOW_NETS=203.0.113.7/32", "WEBHOOKS_PORTS=443,8443")
	second.until(`Webhooks may go to http and any port on this machine, and otherwise to where WEBHOOKS_… lets them\.`)
	again := second.until(`base URL +(\S+)`)[1]
	if got := status(t, "GET", again+"/api/v1/sales", key); got != 200 {
		t.Errorf("the key of the first start is answered %d by the second", got)
	}
	if code := second.interrupt(); code != 0 {
		t.Errorf("Ctrl-C ended it with status %d:\n%s", code, second.output)
	}
}

func TestAKilledStackLeavesNothingThatKeepsTheNextFromStarting(t *testing.T) {
	t.Parallel()
	data := newDataDir(t)
	first := launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+data)
	first.until("Ctrl-C")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	second := launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+data, "DEMO=exit")
	if code := second.end(); code != 0 {
		t.Errorf("the next start ended with status %d:\n%s", code, second.output)
	}
}

func TestTwoStacksRunSideBySide(t *testing.T) {
	t.Parallel()
	a := launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+newDataDir(t), "DEMO=off")
	b := launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+newDataDir(t), "DEMO=off", "ADMIN_TOKEN=mine")
	one, two := a.until(`base URL +(\S+)`)[1], b.until(`base URL +(\S+)`)[1]
	if one == two {
		t.Fatalf("both answer at %s", one)
	}
	if got := status(t, "GET", one+"/admin/v1/tenants", "mine"); got != 401 {
		t.Errorf("the other stack's token is answered %d", got)
	}
	if got := status(t, "GET", two+"/admin/v1/tenants", "mine"); got != 200 {
		t.Errorf("the given token is answered %d", got)
	}
	a.interrupt()
	b.interrupt()
	if strings.Contains(b.output.String(), "demo key") {
		t.Error("DEMO=off made a demo tenant")
	}
}

func TestWhatCannotWorkIsToldInOneSentence(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := func() string { return "DATA_DIR=" + newDataDir(t) }
	for name, row := range map[string]struct {
		variables []string
		says      string
	}{
		"the port is in use":             {[]string{"ADDR=" + taken.Addr().String(), folder()}, `^partilha: cannot listen on ADDR \S+: address already in use$`},
		"the address is none":            {[]string{"ADDR=nowhere", folder()}, `^partilha: ADDR "nowhere" is not an address`},
		"the data folder is a file":      {[]string{"ADDR=127.0.0.1:0", "DATA_DIR=" + file}, `^partilha: .*DATA_DIR.*not a directory$`},
		"DATABASE_URL is no URL":         {[]string{"ADDR=127.0.0.1:0", folder(), "DATABASE_URL=nonsense"}, `^partilha: DATABASE_URL is not of the form postgres://`},
		"nobody answers at DATABASE_URL": {[]string{"ADDR=127.0.0.1:0", folder(), "DATABASE_URL=postgres://u:secret@127.0.0.1:1/x"}, `^partilha: cannot reach PostgreSQL at DATABASE_URL \(host 127.0.0.1:1\): connection refused$`},
		"LOG_LEVEL is unknown":           {[]string{"ADDR=127.0.0.1:0", folder(), "LOG_LEVEL=loud"}, `^partilha: LOG_LEVEL "loud" is none of`},
	} {
		t.Run(name, func(t *testing.T) {
			launch(t, row.variables...).wantOneSentence(row.says)
		})
	}
}

func TestADataFolderBelongsToOneStack(t *testing.T) {
	t.Parallel()
	data := newDataDir(t)
	first := launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+data, "DEMO=off")
	first.until("Ctrl-C")
	launch(t, "ADDR=127.0.0.1:0", "DATA_DIR="+data).wantOneSentence(`^partilha: another stack already runs on DATA_DIR`)
	first.interrupt()
}

// TestAFullDiskIsToldInOneSentence gives the program a disk of its own that is too
// small. A mount namespace keeps it from everybody else.
func TestAFullDiskIsToldInOneSentence(t *testing.T) {
	t.Parallel()
	folder := filepath.Dir(newDataDir(t))
	mount := "mount -t tmpfs -o size=12m,mode=0755 none " + folder + " && exec " + program
	arguments := []string{"--mount", "sh", "-c", mount}
	if os.Geteuid() != 0 {
		arguments = append([]string{"--user", "--map-root-user"}, arguments...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "unshare", arguments...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "ADDR=127.0.0.1:0", "DATA_DIR=" + folder + "/data"}
	out, err := command.CombinedOutput()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 1 {
		t.Fatalf("ended with %v: %s", err, out)
	}
	if said := strings.TrimSpace(string(out)); strings.Contains(said, "\n") || !strings.Contains(said, "no space is left") {
		t.Errorf("said %q", said)
	}
}

// newDataDir names a data folder below one that every user can enter, so that root's
// PostgreSQL lives in it and is removed with it.
func newDataDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "partilha-local-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(parent, "data")
}

func status(t *testing.T, method, url, token string) int {
	t.Helper()
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
