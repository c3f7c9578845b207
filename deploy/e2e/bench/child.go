package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// childCommand is the argument that makes this program serve instead of measure.
const childCommand = "serve-as-child"

// role is what a child process serves.
type role string

const (
	roleSales       role = "sales service" // with its relay
	roleCommissions role = "commissions service"
	roleGoals       role = "goals service"
	roleNATS        role = "NATS server"
	roleBare        role = "bare handler" // POST /sales without a database
	roleStack       role = "stack"        // all four services, as `make run` has them

	roleWebhooks role = "webhooks service" // alone
	roleLoop     role = "delivery loop"    // signs and posts, and records nothing
)

// assignment is the first line on a child's standard input. The end of that input
// tells the child to stop.
type assignment struct {
	Role        role
	Dir         string // for logs and the files of NATS
	DatabaseURL string // of the service's database, or of any on the server for the stack
	NATSURL     string // of the server of a service; "" for one in the same process
	Writers     int    // SALES_WRITERS, where the sales service runs alone
	CPUProfile  string // where to write one; "" for none
	InFlight    int    // calls that a tenant may have under way; 0: nobody is limited
	Waiting     int    // how many more may wait; 0: any number

	Targets  []string // where the delivery loop posts to
	Attempts int      // WEBHOOKS_CONCURRENCY, where the webhooks service runs alone; 0: as usual
}

// announcement is the one line on a child's standard output, once it serves.
type announcement struct {
	Address    string // host:port
	AdminToken string // "" where there are no tenants
	Key        string // of the only tenant, where there is no database
}

// child is a running process that serves.
type child struct {
	announcement
	role  role
	cmd   *exec.Cmd
	input io.WriteCloser
	dir   string
}

// startChild starts a process and returns when it serves.
func startChild(g *ground, a assignment) (*child, error) {
	var err error
	if a.Dir, err = g.folder(); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	c := &child{role: a.Role, cmd: exec.Command(program, childCommand), dir: a.Dir}
	c.cmd.Stderr = os.Stderr
	if c.input, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", a.Role, err)
	}
	output, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the %s: %w", a.Role, err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", a.Role, err)
	}
	if err := json.NewEncoder(c.input).Encode(a); err != nil {
		return nil, errors.Join(fmt.Errorf("start the %s: %w", a.Role, err), c.stop())
	}
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.announcement)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the %s: it did not come up", a.Role), c.stop())
	}
	return c, nil
}

// stopWithin is how long a child may take to finish what is under way.
const stopWithin = time.Minute

// stop ends the process in good order. Its folder stays, for whoever looks for the
// cause of a failure; discard removes it.
func (c *child) stop() error {
	c.input.Close()
	late := time.AfterFunc(stopWithin, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("the %s has failed: %w; see %s", c.role, err, c.dir)
	}
	return nil
}

// discard removes what the process has left, once it is known to be of no use.
func (c *child) discard() error {
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove the files of the %s: %w", c.role, err)
	}
	return nil
}

// serveAsChild does what the assignment on standard input says until that input ends.
func serveAsChild() error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // whoever measures decides when this ends
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the assignment: %w", err)
	}
	var a assignment
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("read the assignment: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	logFile, err := os.Create(filepath.Join(a.Dir, "service.log"))
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer logFile.Close()
	stopProfile, err := startProfile(a.CPUProfile)
	if err != nil {
		return err
	}
	defer stopProfile()
	return serve(ctx, a, logFile, func(now announcement) error {
		return json.NewEncoder(os.Stdout).Encode(now)
	})
}
