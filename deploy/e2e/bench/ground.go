package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/pgserver"
)

// ground is what every measurement stands on: one PostgreSQL server with its usual
// durability and one folder, both of this run alone.
type ground struct {
	dir      string
	programs string // the folder of PostgreSQL's programs
	postgres *pgserver.Server
	admin    *pgx.Conn
	serial   int // of the last folder that was handed out
}

func openGround(ctx context.Context, o options) (_ *ground, err error) {
	g := &ground{}
	if g.programs, err = pgserver.Find(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make -dir: %w", err)
	}
	if err := refuseMemory(o.dir); err != nil {
		return nil, err
	}
	if g.dir, err = os.MkdirTemp(o.dir, "run-"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	if err := os.Chmod(g.dir, 0o755); err != nil { // PostgreSQL may run as another user
		return nil, g.close(err)
	}
	server := pgserver.Options{Dir: filepath.Join(g.dir, "postgres")}
	var slowing *slowing
	if o.slowFsync {
		if slowing, err = compileSlowing(ctx); err != nil {
			return nil, g.close(err)
		}
		defer slowing.remove() // PostgreSQL has it loaded by then
		server.Env = slowing.environment()
	}
	if g.postgres, err = pgserver.Start(ctx, server); err != nil {
		return nil, g.close(err)
	}
	if g.admin, err = pgx.Connect(ctx, g.postgres.URL("postgres")); err != nil {
		return nil, g.close(fmt.Errorf("connect to PostgreSQL: %w", err))
	}
	if slowing != nil {
		if err := slowing.check(ctx, g.admin); err != nil {
			return nil, g.close(err)
		}
	}
	return g, nil
}

// close stops the server and removes the folder, unless the run failed by itself with
// err: then it stays, for whoever looks for the cause. It returns err.
func (g *ground) close(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if g.admin != nil {
		g.admin.Close(ctx)
	}
	if g.postgres != nil {
		err = errors.Join(err, g.postgres.Stop(ctx))
	}
	if err != nil && !errors.Is(err, errInterrupted) {
		return fmt.Errorf("%w\n(data and logs are kept in %s)", err, g.dir)
	}
	return errors.Join(err, g.remove())
}

func (g *ground) remove() error {
	// Run by root, the files may lie elsewhere, behind a link.
	elsewhere, err := filepath.EvalSymlinks(filepath.Join(g.dir, "postgres"))
	if err == nil {
		err = os.RemoveAll(elsewhere)
	}
	if err = errors.Join(err, os.RemoveAll(g.dir)); err != nil {
		return fmt.Errorf("remove the data: %w", err)
	}
	return nil
}

// folder makes a new folder for one child process.
func (g *ground) folder() (string, error) {
	g.serial++
	dir := filepath.Join(g.dir, fmt.Sprintf("service-%d", g.serial))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	return dir, nil
}

// drop removes a database of an earlier measurement, if there is one.
func (g *ground) drop(ctx context.Context, database string) error {
	if _, err := g.admin.Exec(ctx, "drop database if exists "+pgx.Identifier{database}.Sanitize()+" with (force)"); err != nil {
		return fmt.Errorf("drop database %s: %w", database, err)
	}
	return nil
}

// fresh makes an empty database in place of the one of that name.
func (g *ground) fresh(ctx context.Context, database string) error {
	if err := g.drop(ctx, database); err != nil {
		return err
	}
	return g.postgres.CreateDatabase(ctx, database)
}

// settle writes out what earlier work has left in memory, so that no measurement
// pays for the one before.
func (g *ground) settle(ctx context.Context) error {
	if _, err := g.admin.Exec(ctx, "checkpoint"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// number is the one number that the query finds in a database.
func (g *ground) number(ctx context.Context, database, query string, arguments ...any) (n int64, err error) {
	conn, err := pgx.Connect(ctx, g.postgres.URL(database))
	if err != nil {
		return 0, fmt.Errorf("count in %s: %w", database, err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, query, arguments...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count in %s: %w", database, err)
	}
	return n, nil
}

// expect fails unless the query finds that number in the database.
func (g *ground) expect(ctx context.Context, what, database, query string, want int64, arguments ...any) error {
	got, err := g.number(ctx, database, query, arguments...)
	if err == nil && got != want {
		err = fmt.Errorf("%s: %d, want %d", what, got, want)
	}
	return err
}
