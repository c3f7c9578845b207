package child

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Where it is set, this test binary is an owner that is to be killed.
const isOwner = "CHILD_TEST_IS_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(isOwner) != "" {
		// cat ends by itself only when its input does, and the test holds that open.
		cmd := exec.Command("sh", "-c", "echo ready; exec cat")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := Run(cmd, syscall.SIGKILL); err != nil {
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func TestAChildEndsWhenItsOwnerIsKilled(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), isOwner+"=yes")
	input, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	owner.Stdin = input
	output, inherited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	owner.Stdout = inherited
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	input.Close()
	inherited.Close()
	lines := bufio.NewReader(output)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}

	owner.Process.Kill()
	owner.Wait()

	// The output ends when the last process that holds it has: a child that lives
	// on makes this wait until the test binary's own time is up.
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("read %q, %v", rest, err)
	}
}

func TestASignalEndsTheChildAndErrSaysSo(t *testing.T) {
	p, err := Start(exec.Command("sleep", "600"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil {
		t.Errorf("while it runs Err is %v", p.Err())
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if p.Err() == nil || p.Err().Error() != "signal: terminated" {
		t.Errorf("after a signal Err is %v", p.Err())
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal after the end: %v", err)
	}
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	if _, err := Start(exec.Command("/no/such/program"), syscall.SIGKILL); err == nil {
		t.Error("it started")
	}
}

func TestAChildHasAProcessGroupOfItsOwn(t *testing.T) {
	p, err := Start(exec.Command("sleep", "600"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { p.Signal(syscall.SIGKILL); <-p.Done() }()
	if group, err := syscall.Getpgid(p.PID()); err != nil || group != p.PID() {
		t.Errorf("its group is %d, %v; want %d", group, err, p.PID())
	}
}
