// Package pgserver runs a private PostgreSQL server as a child process, for the
// local stack, for tests and for benchmarks.
//
// It uses the programs of the PostgreSQL that is installed but neither reads nor
// touches a cluster that the system runs. The server listens on a unix socket
// alone, in a folder that only its own user (and root) can enter; nothing listens
// on the network. On Linux the server shuts down when its owner dies, even by
// kill -9.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// user is the superuser of every cluster that this package makes.
const user = "partilha"

// port only names the socket's file: no TCP port is opened.
const port = "5432"

// Options describes one server. Only Dir is required.
type Options struct {
	// Dir holds the cluster in data, the log in server.log, and the log of the
	// run before in server.log.1. It is made with mode 0700 if it is absent and
	// gets a new cluster if it is empty.
	//
	// PostgreSQL refuses to run as root. For root it runs as the owner of Dir; an
	// absent Dir, or one of root's, is given to the user postgres. Where that user
	// cannot reach Dir, the files live below /var/lib/partilha and Dir is a link to
	// them; removing the link is removing the cluster.
	Dir string

	// Settings are server settings such as fsync=off; they win over this
	// package's own. Without any, PostgreSQL's defaults for durability hold.
	Settings map[string]string

	// Env is added to the environment of the server, as NAME=value. Variables of
	// this process are inherited, except PG*.
	Env []string

	// Log gets a copy of what the server logs; nil means the file alone. A Write
	// that blocks stalls the server.
	Log io.Writer

	// MaxConnections is 200 if it is 0.
	MaxConnections int

	follows *Server // the primary of a standby
}

// Server is a PostgreSQL server that belongs to this process.
// Its methods may be called concurrently, except Restart.
type Server struct {
	options Options
	cluster *cluster

	mu  sync.Mutex
	run *run
}

// Start brings up the server on o.Dir, with a new cluster if there is none, and
// returns when it answers queries: after a crash that includes the recovery.
//
// It fails, in one sentence that names the cause, if PostgreSQL is not installed,
// a server already runs on Dir, or the server ends or ctx does before it is ready.
// Nothing is left running then.
func Start(ctx context.Context, o Options) (*Server, error) {
	c, err := openCluster(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = 200
	}
	s := &Server{options: o, cluster: c}
	if s.run, err = c.launch(ctx, o, c.usualSocket()); err != nil {
		return nil, err
	}
	return s, nil
}

// Restart starts a stopped, killed or crashed server again, on the same files and
// with the same options and URL. It fails like Start, also if the server still runs.
func (s *Server) Restart(ctx context.Context) error {
	next, err := s.cluster.launch(ctx, s.options, s.current().socket)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = next
	return nil
}

func (s *Server) current() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// URL is the address of a database for pgx, psql and pgbench. It carries no
// secret, stays the same across Restart, and does not say that the database exists.
// The user is a superuser.
func (s *Server) URL(database string) string {
	return s.current().url(database)
}

func socketURL(folder, database string) string {
	return addressOf(database, url.Values{"host": {folder}, "port": {port}})
}

func addressOf(database string, where url.Values) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + database, RawQuery: where.Encode()}
	return u.String()
}

// CreateDatabase makes an empty database; one that exists is left as it is and is
// no error.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
	if err != nil && !alreadyThere(err) {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// alreadyThere knows both answers: the common one, and that to the loser of two
// calls at the same moment.
func alreadyThere(err error) bool {
	const duplicateDatabase, uniqueViolation = "42P04", "23505"
	var answer *pgconn.PgError
	return errors.As(err, &answer) && (answer.Code == duplicateDatabase || answer.Code == uniqueViolation)
}

// Stop ends all connections, shuts the server down cleanly and waits for its end.
// If ctx ends first, that is an error and the shutdown goes on. Stopping a server
// that has ended is no error.
func (s *Server) Stop(ctx context.Context) error {
	r := s.current()
	r.intend()
	if err := r.process.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("stop PostgreSQL on %s: %w", s.cluster.dir, err)
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop PostgreSQL on %s: it is still shutting down: %w", s.cluster.dir, ctx.Err())
	}
}

// Done is closed when the server has ended, for whatever reason. After Restart it
// is another channel.
func (s *Server) Done() <-chan struct{} { return s.current().done }

// Err says why the server ended: nil while it runs and after a clean Stop.
func (s *Server) Err() error {
	r := s.current()
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}
