// Package stack runs all of Partilha in one process: a private PostgreSQL, an
// embedded NATS server, and the four services behind one address.
//
// It is what `make run`, the end-to-end tests and the benchmarks stand on. The
// services are the same code as in production, wired by the same constructors; only
// their servers are private to this process.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/pgserver"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
	"partilha.dev/services/commissions"
	"partilha.dev/services/goals"
	"partilha.dev/services/sales"
	"partilha.dev/services/webhooks"
)

// Options say what a stack is made of. Only DataDir is required.
type Options struct {
	Addr        string         // where it answers; default 127.0.0.1:8080, port 0 picks one
	DataDir     string         // made if absent; everything that lasts is in it
	DatabaseURL string         // a PostgreSQL server to use instead of a private one
	NATSURL     string         // a NATS server to use instead of the embedded one
	Limits      service.Limits // of each service; zero: nobody is limited
	Log         *zap.Logger

	// What each service alone is configured with. The operator's token and the keys that
	// seal are made once and kept in DataDir where they are empty.
	Sales       sales.Config
	Commissions commissions.Config
	Goals       goals.Config
	Webhooks    webhooks.Config

	Extra    http.Handler // answers the paths below /demo/, if it is set
	Progress io.Writer    // told of what takes long, such as installing PostgreSQL

	PostgresSettings map[string]string // of the private server
	PostgresEnv      []string          // of the private server
}

// Stack is a running stack.
type Stack struct {
	URL        string // base URL of all four services
	AdminToken string
	NATSURL    string

	postgres *pgserver.Server // nil: somebody else's
	closers  []func() error   // in the order in which things started
	failed   chan error       // what ended by itself
	stopOnce sync.Once
	stopErr  error
}

// Start brings everything up and returns when the address answers. If anything
// fails, what had started is stopped and the error is one clear sentence.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	s := &Stack{failed: make(chan error, 8)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:8080"
	}
	if err := s.claim(o.DataDir); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on ADDR %s: %w", o.Addr, plain(err))
	}
	s.started(func() error {
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) { // closed already where HTTP was served
			return err
		}
		return nil
	})
	s.URL = "http://" + listener.Addr().String()

	if s.AdminToken, err = secret(filepath.Join(o.DataDir, "admin-token"), o.Sales.AdminToken); err != nil {
		return nil, err
	}
	stopTrace, err := trace.Export(ctx, "partilha")
	if err != nil {
		return nil, fmt.Errorf("start tracing: %w", err)
	}
	s.started(func() error { return stopTrace(context.Background()) })
	databaseURL, err := s.startPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	if s.NATSURL, err = s.startNATS(o); err != nil {
		return nil, err
	}
	members, err := s.startServices(ctx, o, databaseURL)
	if err != nil {
		return nil, err
	}
	handler, err := edge(members, o.Extra)
	if err != nil {
		return nil, err
	}
	s.serve(listener, handler)
	return s, nil
}

// Failed tells when a part has ended by itself, and why.
func (s *Stack) Failed() <-chan error { return s.failed }

// Postgres is the private server, or nil.
func (s *Stack) Postgres() *pgserver.Server { return s.postgres }

// Stop stops everything in the reverse order of its start: the address first,
// PostgreSQL last. It may be called more than once.
func (s *Stack) Stop() error {
	s.stopOnce.Do(func() {
		var errs []error
		for i := len(s.closers) - 1; i >= 0; i-- {
			errs = append(errs, s.closers[i]())
		}
		s.stopErr = errors.Join(errs...)
	})
	return s.stopErr
}

func (s *Stack) started(stop func() error) { s.closers = append(s.closers, stop) }

// background runs work until the stack stops, and reports it if it ends before.
func (s *Stack) background(what string, work func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := work(ctx)
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		if ctx.Err() == nil {
			s.failed <- err
		}
		done <- err
	}()
	s.started(func() error {
		cancel()
		return <-done
	})
}

func (s *Stack) serve(listener net.Listener, handler http.Handler) {
	s.background("HTTP", func(ctx context.Context) error { return web.Serve(ctx, listener, handler) })
}

// claim makes the data folder and takes it for this process.
func (s *Stack) claim(dir string) error {
	if err := MakeDataDir(dir); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("cannot use DATA_DIR %s: %w", dir, plain(err))
	}
	if err := takeLock(lock); err != nil {
		return fmt.Errorf("another stack already runs on DATA_DIR %s; stop it, or choose another DATA_DIR and ADDR", dir)
	}
	s.started(lock.Close) // the lock goes with the file, also when the process is killed
	return nil
}

// MakeDataDir makes the data folder if it is absent. Nobody else can list it, and every
// secret in it is a file of mode 0600; root's can be entered, since PostgreSQL, which
// refuses to run as root, lives in it as another user.
func MakeDataDir(dir string) error {
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("cannot make DATA_DIR %s: %w", dir, plain(err))
	}
	return nil
}

// plain leaves the reason of an error, as the system words it, and drops the operation
// and the path, which the sentence around it names.
func plain(err error) error {
	var reason syscall.Errno
	if errors.As(err, &reason) {
		return reason
	}
	return err
}

// startPostgres starts the private server, after installing PostgreSQL if there is
// none, unless the options name a server.
func (s *Stack) startPostgres(ctx context.Context, o Options) (url func(database string) string, err error) {
	if o.DatabaseURL != "" {
		return foreignPostgres(ctx, o.DatabaseURL)
	}
	if _, err := pgserver.Find(); err != nil {
		fmt.Fprintln(o.Progress, "PostgreSQL's server is not installed; installing it …")
		if err := pgserver.Install(ctx, o.Progress); err != nil {
			return nil, err
		}
	}
	server, err := pgserver.Start(ctx, pgserver.Options{
		Dir: filepath.Join(o.DataDir, "postgres"), Settings: o.PostgresSettings, Env: o.PostgresEnv,
	})
	if err != nil {
		return nil, err
	}
	s.postgres = server
	s.started(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return server.Stop(ctx)
	})
	for _, name := range serviceNames {
		if err := server.CreateDatabase(ctx, databaseName(name)); err != nil {
			return nil, err
		}
	}
	return server.URL, nil
}

func databaseName(service string) string { return "partilha_" + service }
