package testkit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/internal/child"
)

// NATSServer is a nats-server process with JetStream that one test owns. Its methods
// fail the test where they cannot do what they say; call them on the test's goroutine.
type NATSServer struct {
	t       testing.TB
	program string
	folder  string
	port    int
	member  string         // what its settings say of the cluster; "" for a server that stands alone
	disk    *Disk          // nil: it stores where everybody does
	process *child.Process // nil while it is down

	user, password string // of whoever is let in; "" for everybody
}

// NATS starts a server with an empty store on a free port of the loopback. It ends
// with the test.
//
// The program is built from the module deploy/local of this repository, once for
// each version, and kept in the user's cache folder.
func NATS(t testing.TB) *NATSServer {
	t.Helper()
	program, err := natsProgram()
	if err != nil {
		t.Fatal(err)
	}
	n := &NATSServer{t: t, program: program, folder: newFolder(t)}
	t.Cleanup(n.Kill)
	const attempts = 5 // another process may take the port before the server does
	for range attempts {
		if n.port, err = freePort(); err != nil {
			t.Fatal(err)
		}
		if err = n.start(); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// URL is where clients connect; it stays the same for the life of the test.
func (n *NATSServer) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.port) }

// Start brings the server up again, on the same port and store, and returns when
// JetStream answers. Starting a server that runs fails the test.
func (n *NATSServer) Start() {
	n.t.Helper()
	if n.process != nil {
		n.t.Fatal("start NATS: it runs already")
	}
	if err := n.start(); err != nil {
		n.t.Fatal(err)
	}
}

// Stop shuts the server down in good order and returns when it has ended.
func (n *NATSServer) Stop() {
	n.t.Helper()
	n.end(syscall.SIGINT)
}

// Kill ends the server with kill -9 and returns when it has ended. What the server
// had written stays with the operating system, so this is no power cut.
func (n *NATSServer) Kill() {
	n.t.Helper()
	n.end(syscall.SIGKILL)
}

// Wipe deletes all that the server has stored. It must be down.
func (n *NATSServer) Wipe() {
	n.t.Helper()
	if n.process != nil {
		n.t.Fatal("wipe NATS: it runs; stop it first")
	}
	if err := os.RemoveAll(n.store()); err != nil {
		n.t.Fatalf("wipe NATS: %v", err)
	}
}

// MoveToDisk has the server begin anew on an empty disk of its own, of so many mebibytes.
// It must be down.
func (n *NATSServer) MoveToDisk(mebibytes int) *Disk {
	n.t.Helper()
	n.Wipe()
	if err := os.Mkdir(n.store(), 0o700); err != nil {
		n.t.Fatal(err)
	}
	n.disk = newDisk(n.t, n.store(), mebibytes)
	n.t.Cleanup(n.Kill) // before its disk goes
	return n.disk
}

// Admit lets nobody else in than this user, from the next start on. URL names none.
func (n *NATSServer) Admit(name, password string) { n.user, n.password = name, password }

func (n *NATSServer) store() string   { return filepath.Join(n.folder, "store") }
func (n *NATSServer) logFile() string { return filepath.Join(n.folder, "server.log") }

func (n *NATSServer) end(signal syscall.Signal) {
	n.t.Helper()
	if n.process == nil {
		return
	}
	if err := n.process.Signal(signal); err != nil {
		n.t.Fatalf("end NATS: %v", err)
	}
	select {
	case <-n.process.Done():
		n.process = nil
	case <-time.After(patience):
		n.t.Fatalf("end NATS: it has not ended %s after the signal", patience)
	}
}

// start leaves no process behind if it fails. It returns syscall.EADDRINUSE if that
// is why.
func (n *NATSServer) start() error {
	if err := n.launch(); err != nil {
		return err
	}
	if err := n.awaitReady(); err != nil {
		n.end(syscall.SIGKILL)
		return fmt.Errorf("start NATS: %w", err)
	}
	return nil
}

// launch starts the process and does not wait until it answers.
func (n *NATSServer) launch() error {
	settings := filepath.Join(n.folder, "server.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:%d\"\njetstream: { store_dir: %q, sync_interval: \"2s\" }\n%s", n.port, n.store(), n.member)
	if n.user != "" {
		text += fmt.Sprintf("authorization: { user: %q, password: %q }\n", n.user, n.password)
	}
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	log, err := os.Create(n.logFile())
	if err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(n.program, "-c", settings)
	if n.disk != nil {
		cmd = n.disk.command(n.program, "-c", settings)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if n.process, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	return nil
}

func (n *NATSServer) awaitReady() error {
	deadline := time.After(patience)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := n.ask()
		if err == nil {
			return nil
		}
		select {
		case <-n.process.Done():
			log, _ := os.ReadFile(n.logFile()) // without it the exit status must do
			if strings.Contains(string(log), "address already in use") {
				return syscall.EADDRINUSE
			}
			return fmt.Errorf("the server ended: %v: %s", n.process.Err(), log)
		case <-deadline:
			return fmt.Errorf("the server was not ready within %s: %w", patience, err)
		case <-ticker.C:
		}
	}
}

// ask succeeds when JetStream answers.
func (n *NATSServer) ask() error {
	conn, err := nats.Connect(n.URL(), nats.NoReconnect(), nats.Timeout(time.Second), nats.UserInfo(n.user, n.password))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = stream.AccountInfo(ctx)
	return err
}

// freePort picks a port below those that systems give to outgoing connections, so
// that nobody takes it by chance while the server is down.
func freePort() (int, error) {
	const lowest, count, attempts = 20_000, 12_000, 100
	var err error
	for range attempts {
		port := lowest + rand.IntN(count)
		var listener net.Listener
		if listener, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
