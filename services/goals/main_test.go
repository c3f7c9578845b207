package goals_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/testkit"
	"partilha.dev/services/goals"
)

// runAs has the test binary be a service instead, with the database that it names.
const runAs = "GOALS_TEST_SERVICE"

func TestMain(m *testing.M) {
	if url := os.Getenv(runAs); url != "" {
		fmt.Fprintln(os.Stderr, serveAlone(url, os.Getenv(runAs+"_NATS")))
		os.Exit(1)
	}
	testkit.Main(m)
}

// serveAlone runs a service, in small steps, until the process is killed.
func serveAlone(url, nats string) error {
	ctx := context.Background()
	pool, err := postgres.Open(ctx, url, 6)
	if err != nil {
		return err
	}
	b, err := bus.Connect(bus.Config{URL: nats, Name: "child"}, zap.NewNop())
	if err != nil {
		return err
	}
	s, err := goals.New(ctx, goals.Config{}, service.Deps{Pool: pool, Bus: b, Log: zap.NewNop(), Now: time.Now})
	if err != nil {
		return err
	}
	s.FillInStepsOf(childSteps)
	return s.Run(ctx)
}

// childSteps is how many facts a process counts at once: few, so that it is killed
// between any two steps, and in the middle of any.
const childSteps = 50

// process starts a service of its own and returns what kills it, without a warning.
func (w *world) process() (kill func()) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), runAs+"="+w.url, runAs+"_NATS="+w.nats)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	kill = func() {
		_ = cmd.Process.Kill() // it may be dead already
		<-ended
	}
	w.t.Cleanup(kill)
	return kill
}
