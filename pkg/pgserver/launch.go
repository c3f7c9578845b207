package pgserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"partilha.dev/pkg/internal/child"
)

// run is one life of a server, from its start to its end.
type run struct {
	cluster  *cluster
	process  *child.Process
	log      *os.File
	socket   string // the folder of its socket
	intended atomic.Bool
	done     chan struct{}
	err      error // written before done is closed
}

// launch starts the server and waits until it is ready. It puts the socket into
// the folder of that name if it can.
func (c *cluster) launch(ctx context.Context, o Options, socket string) (*run, error) {
	lock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	r, err := c.spawn(o, socket, lock)
	lock.Close() // the server has its own
	if err != nil {
		return nil, err
	}
	if err := r.awaitReady(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func (c *cluster) spawn(o Options, socket string, lock *os.File) (*run, error) {
	programs, err := programsFor(c.data())
	if err != nil {
		return nil, err
	}
	if err := c.initialize(programs, o, lock); err != nil {
		return nil, err
	}
	if err := c.clearStale(); err != nil {
		return nil, err
	}
	socket, err = c.makeSocketFolder(socket)
	if err != nil {
		return nil, err
	}
	log, err := c.newLog()
	if err != nil {
		return nil, err
	}

	cmd := c.account.command(c.home, filepath.Join(programs, "postgres"), arguments(c.data(), socket, o)...)
	cmd.Env = environment(o.Env)
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Stdout, cmd.Stderr = log, log
	if o.Log != nil {
		both := io.MultiWriter(log, o.Log)
		cmd.Stdout, cmd.Stderr = both, both
		cmd.WaitDelay = time.Second // for processes of a killed server that hold the pipe
	}
	process, err := child.Start(cmd, syscall.SIGINT)
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	r := &run{cluster: c, process: process, log: log, socket: socket, done: make(chan struct{})}
	go r.wait()
	return r, nil
}

// arguments puts the caller's settings last, where they win.
//
// The log stays free of what the rows contain: PostgreSQL would add the values
// that broke a constraint, and the text of the statement.
func arguments(data, socket string, o Options) []string {
	args := []string{
		"-D", data,
		"-c", "listen_addresses=",
		"-c", "port=" + port,
		"-c", "unix_socket_directories=" + socket,
		"-c", "max_connections=" + strconv.Itoa(o.MaxConnections),
		"-c", "log_error_verbosity=terse",
		"-c", "log_min_error_statement=panic",
	}
	names := make([]string, 0, len(o.Settings))
	for name := range o.Settings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		args = append(args, "-c", name+"="+o.Settings[name])
	}
	return args
}

// newLog starts an empty log and keeps one older.
func (c *cluster) newLog() (*os.File, error) {
	err := os.Rename(c.logFile(), c.logFile()+".1")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("start a new PostgreSQL log: %w", err)
	}
	file, err := os.OpenFile(c.logFile(), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start a new PostgreSQL log: %w", err)
	}
	return file, nil
}

// usualSocket is the folder of the socket. It depends on Dir alone, so that the
// server has the same URL every time, and is not below Dir, since the path of a
// socket has at most 107 characters.
func (c *cluster) usualSocket() string {
	sum := sha256.Sum256([]byte(c.home))
	return "/tmp/partilha-pg-" + hex.EncodeToString(sum[:6])
}

// makeSocketFolder makes an empty folder that only the account can enter, under
// another name where another user of this machine has taken this one.
func (c *cluster) makeSocketFolder(folder string) (string, error) {
	os.RemoveAll(folder) // fails where it is another user's, and so does the next line
	err := os.Mkdir(folder, 0o700)
	if err != nil {
		folder, err = os.MkdirTemp("/tmp", "partilha-pg-")
	}
	if err == nil {
		err = c.account.give(folder)
	}
	if err != nil {
		return "", fmt.Errorf("make a folder for the PostgreSQL socket: %w", err)
	}
	return folder, nil
}

func (r *run) url(database string) string { return socketURL(r.socket, database) }

// intend says that the coming end of the server is wanted.
func (r *run) intend() { r.intended.Store(true) }

func (r *run) wait() {
	<-r.process.Done()
	r.log.Close()
	os.RemoveAll(r.socket)
	if err := r.process.Err(); err != nil || !r.intended.Load() {
		why := "exit status 0"
		if err != nil {
			why = err.Error()
		}
		r.err = fmt.Errorf("PostgreSQL on %s has ended (%s); %s tells more", r.cluster.dir, why, r.cluster.logFile())
	}
	close(r.done)
}

// awaitReady returns when a connection succeeds. Otherwise the server has ended,
// or is made to.
func (r *run) awaitReady(ctx context.Context) error {
	for {
		err := r.connect(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.done:
			log, _ := os.ReadFile(r.cluster.logFile()) // without it the exit status must do
			return fmt.Errorf("start PostgreSQL: %s", r.cluster.complaint(string(log), r.process.Err()))
		case <-ctx.Done():
			err = fmt.Errorf("start PostgreSQL: the server on %s was not ready in time: %w", r.cluster.dir, ctx.Err())
			return errors.Join(err, r.kill())
		default:
		}
		if refused(err) {
			return errors.Join(fmt.Errorf("start PostgreSQL: %w", err), r.kill())
		}
		pause(ctx)
	}
}

func (r *run) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, r.url("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// refused is whether the server is up and said no, which waiting does not change.
func refused(err error) bool {
	const startingUp = "57P03"
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code != startingUp
}
