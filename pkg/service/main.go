package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
)

// Program is one service as a command line.
type Program struct {
	Name    string
	Schemas []postgres.Schema
	// Settings is a pointer to what serve, and any command that needs the service, reads
	// from the environment for this service alone before New is called; nil: nothing.
	Settings any
	New      func(context.Context, Deps) (Service, error) // wires the service
	// Commands are the service's own, beside serve, migrate and parked.
	Commands []Command
}

// Command is something that an operator does at the command line.
type Command struct {
	Usage string // "tenant create NAME": the leading lower-case words select it
	About string
	// Help is what --help or -h prints after the words of the usage; "" where About says it all.
	Help string
	// Failure is the status of the process where Run, or what must be there before it,
	// fails; 0 stands for 1.
	Failure int
	Run     func(ctx context.Context, deps Deps, args []string) error
}

// Status is the error of a command that has done its work and said what there is to
// say, and yet ends the process with another status than 0.
type Status int

func (s Status) Error() string { return fmt.Sprintf("status %d", int(s)) }

// Main runs the command that os.Args name and ends the process: status 0, or 1 after
// one sentence on standard error, or 2 for a command that does not exist. A command
// may have statuses of its own.
func Main(p Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := p.run(ctx, os.Args[1:])
	var status Status
	switch {
	case err == nil:
	case errors.As(err, &status):
		os.Exit(int(status))
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, p.usage())
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		os.Exit(statusOf(err))
	}
}

// failure is an error of a command that has a status of its own for it.
type failure struct {
	error
	status int
}

func (f *failure) Unwrap() error { return f.error }

func statusOf(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.status
	}
	return 1
}

var errUsage = errors.New("no such command")

func (p Program) commands() []Command {
	commands := []Command{
		{Usage: "serve", About: "answer the API and do the background work"},
		{Usage: "migrate", About: "bring the database to this version's schema"},
		{Usage: "healthcheck", About: "ask the service that runs at ADDR whether it is ready"},
		{Usage: "version", About: "tell which version this is"},
	}
	commands = append(commands, p.Commands...)
	if p.has(outbox.Schema) {
		commands = append(commands, republishCommand)
	}
	if p.has(outbox.Schema) || p.has(bus.Schema) {
		commands = append(commands, p.catchUpCommand())
	}
	if p.has(bus.Schema) {
		commands = append(commands, p.parkedCommands()...)
	}
	if p.has(outbox.Schema) || p.has(bus.Schema) {
		commands = append(commands, p.reconcileCommands()...)
	}
	return commands
}

// has tells whether the service has the tables of a shared package.
func (p Program) has(schema postgres.Schema) bool {
	return slices.ContainsFunc(p.Schemas, func(s postgres.Schema) bool { return s.Name == schema.Name })
}

func (p Program) usage() string {
	var text strings.Builder
	fmt.Fprintf(&text, "usage: %s COMMAND\n\n", p.Name)
	for _, c := range p.commands() {
		fmt.Fprintf(&text, "  %-32s %s\n", c.Usage, c.About)
	}
	return text.String()
}

func (p Program) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	for _, command := range p.commands() {
		words := selector(command.Usage)
		if len(args) < len(words) || !slices.Equal(args[:len(words)], words) {
			continue
		}
		rest := args[len(words):]
		if command.Help != "" && (slices.Contains(rest, "--help") || slices.Contains(rest, "-h")) {
			_, err := fmt.Print(command.Help)
			return err
		}
		err := p.runCommand(ctx, command, rest)
		if err != nil && command.Failure != 0 {
			return &failure{err, command.Failure}
		}
		return err
	}
	return errUsage
}

func (p Program) runCommand(ctx context.Context, command Command, args []string) error {
	if command.Run == nil && len(args) > 0 {
		return errUsage
	}
	switch command.Usage {
	case "healthcheck":
		return Healthcheck(ctx)
	case "version":
		return p.printVersion()
	}
	var config Config
	if err := ReadEnvironment(&config); err != nil {
		return err
	}
	switch command.Usage {
	case "serve":
		if err := p.readSettings(); err != nil { // before anything is reached
			return err
		}
		return p.serve(ctx, config)
	case "migrate":
		return postgres.Migrate(ctx, config.DatabaseURL, p.Schemas...)
	}
	config.LogLevel = "error" // a person reads what the command prints
	deps, closeDeps, err := p.connect(ctx, config)
	if err != nil {
		return err
	}
	defer closeDeps()
	return command.Run(ctx, deps, args)
}

func (p Program) readSettings() error {
	if p.Settings == nil {
		return nil
	}
	return ReadEnvironment(p.Settings)
}

// make is New for a command other than serve, which needs the service's own settings only
// if it needs the service.
func (p Program) make(ctx context.Context, deps Deps) (Service, error) {
	if err := p.readSettings(); err != nil {
		return nil, err
	}
	return p.New(ctx, deps)
}

// selector is the part of a usage that names the command: its leading lower-case words.
func selector(usage string) (words []string) {
	for _, word := range strings.Fields(usage) {
		if word != strings.ToLower(word) || strings.HasPrefix(word, "-") || strings.HasPrefix(word, "[") {
			break
		}
		words = append(words, word)
	}
	return words
}

func (p Program) connect(ctx context.Context, config Config) (Deps, func(), error) {
	log, err := NewLogger(p.Name, config.LogLevel)
	if err != nil {
		return Deps{}, nil, err
	}
	pool, err := postgres.Open(ctx, config.DatabaseURL, config.DatabasePool)
	if err != nil {
		return Deps{}, nil, err
	}
	b, err := bus.Connect(bus.Config{URL: config.NATSURL, Name: p.Name, Replicas: config.NATSReplicas}, log)
	if err != nil {
		pool.Close()
		return Deps{}, nil, err
	}
	deps := Deps{Pool: pool, Bus: b, Log: log, Now: time.Now, Limiter: LimiterFor(config.Limits, config.DatabasePool)}
	return deps, func() { b.Close(); pool.Close(); _ = log.Sync() }, nil
}

// flushWithin is how long the end of the process waits for the collector of traces.
const flushWithin = 5 * time.Second

// serve starts in order and stops in reverse: HTTP first, so that every answered
// request is done; then the background work; then the connections.
func (p Program) serve(ctx context.Context, config Config) (err error) {
	TuneMemory()
	if config.Migrate == "on" {
		err = postgres.Migrate(ctx, config.DatabaseURL, p.Schemas...)
	} else {
		err = postgres.CheckMigrated(ctx, config.DatabaseURL, p.Schemas...)
	}
	if err != nil {
		return err
	}
	stopTrace, err := trace.Export(ctx, p.Name)
	if err != nil {
		return fmt.Errorf("start tracing: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
		defer cancel()
		_ = stopTrace(ctx) // traces are lost with their collector; a service is not
	}()
	deps, closeDeps, err := p.connect(ctx, config)
	if err != nil {
		return err
	}
	defer closeDeps()
	WarnOfUnknown(deps.Log, config, p.Settings)
	if err := deps.ensurePartitions(ctx, p.Schemas); err != nil {
		return err
	}
	s, err := p.New(ctx, deps)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", config.Addr)
	if err != nil {
		return fmt.Errorf("listen on ADDR: %w", err)
	}
	deps.Log.Info("ready", zap.Stringer("addr", listener.Addr()), zap.String("version", Version()))

	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	failed := make(chan error, 1)
	go func() {
		failed <- RunAll(background, s.Run, deps.Maintain(p.Schemas), deps.Measure(p.Name, s.Consumers()))
		stopServing() // background work ends early only by failing
	}()
	err = web.Serve(serving, listener, s.Handler())
	stopBackground()
	err = errors.Join(err, <-failed)
	deps.Log.Info("stopped")
	return err
}
