package testkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/pgserver"
	"partilha.dev/pkg/postgres"
)

// patience is how long a server may take to start or stop on a busy machine.
const patience = time.Minute

// sharedServer is the PostgreSQL that the databases of one test binary live in.
type sharedServer struct {
	*pgserver.Server
	admin  *pgxpool.Pool
	remove func() error // its folder
	serial atomic.Int64 // of the last database

	mu        sync.Mutex
	templates map[string]*template
}

// template is a migrated database that nobody connects to, to be copied.
type template struct {
	once sync.Once
	name string
	err  error
}

var (
	sharedMu sync.Mutex
	shared   *sharedServer // nil until a test needs it
)

// Database makes a database with these schemas for one test and returns its URL.
// It is dropped when the test ends, with whatever is connected to it then.
//
// Each set of schemas is migrated once in a test binary and copied from then on,
// rows that the migrations insert included. The server keeps nothing safe from a
// power cut; a test that kills its server uses Postgres.
func Database(t testing.TB, schemas ...postgres.Schema) string {
	t.Helper()
	server, err := useShared()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	source, err := server.template(ctx, schemas)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test_%d", server.serial.Add(1))
	if err := server.copy(ctx, source, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := server.admin.Exec(ctx, "drop database "+quote(name)+" with (force)"); err != nil {
			t.Errorf("drop database %s: %v", name, err)
		}
	})
	return server.URL(name)
}

// Postgres starts a server for one test, which may Kill, Stop and Restart it. It
// keeps what is committed like any PostgreSQL, has no database but "postgres" at
// first, and ends with the test.
func Postgres(t testing.TB) *pgserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := pgserver.Start(ctx, pgserver.Options{Dir: filepath.Join(newFolder(t), "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// PostgresPair starts a primary as Postgres does, and a standby that has every commit on
// its disk before the primary answers it. Both end with the test.
func PostgresPair(t testing.TB) (primary, standby *pgserver.Server) {
	t.Helper()
	primary = Postgres(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	standby, err := pgserver.StartStandby(ctx, primary, pgserver.Options{Dir: filepath.Join(newFolder(t), "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Kill(); err != nil {
			t.Error(err)
		}
	})
	return primary, standby
}

func useShared() (*sharedServer, error) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared == nil {
		started, err := startShared()
		if err != nil {
			return nil, err
		}
		shared = started
	}
	return shared, nil
}

func startShared() (*sharedServer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	folder, remove, err := makeFolder()
	if err != nil {
		return nil, err
	}
	server, err := pgserver.Start(ctx, pgserver.Options{
		Dir:            filepath.Join(folder, "postgres"),
		MaxConnections: 400,
		Settings: map[string]string{
			"fsync":              "off",
			"full_page_writes":   "off",
			"synchronous_commit": "off",
		},
	})
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	admin, err := pgxpool.New(ctx, server.URL("postgres"))
	if err != nil {
		return nil, errors.Join(err, server.Kill(), remove())
	}
	return &sharedServer{Server: server, admin: admin, remove: remove, templates: map[string]*template{}}, nil
}

// stopShared kills the server: nobody reads its files again.
func stopShared() error {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared == nil {
		return nil
	}
	shared.admin.Close()
	err := errors.Join(shared.Kill(), shared.remove())
	shared = nil
	return err
}

// template returns the name of a database with these schemas, made once.
func (s *sharedServer) template(ctx context.Context, schemas []postgres.Schema) (string, error) {
	if len(schemas) == 0 {
		return "template1", nil
	}
	key, err := fingerprint(schemas)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	one := s.templates[key]
	if one == nil {
		one = &template{name: "template_" + key}
		s.templates[key] = one
	}
	s.mu.Unlock()
	one.once.Do(func() {
		if one.err = s.CreateDatabase(ctx, one.name); one.err == nil {
			one.err = postgres.Migrate(ctx, s.URL(one.name), schemas...)
		}
	})
	return one.name, one.err
}

func (s *sharedServer) copy(ctx context.Context, source, name string) error {
	if _, err := s.admin.Exec(ctx, "create database "+quote(name)+" template "+quote(source)); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// fingerprint tells sets of schemas apart by all that decides what Migrate makes.
func fingerprint(schemas []postgres.Schema) (string, error) {
	sum := sha256.New()
	for _, schema := range schemas {
		fmt.Fprintf(sum, "%q %#v\n", schema.Name, schema.Partitions)
		err := fs.WalkDir(schema.FS, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(schema.FS, path)
			fmt.Fprintf(sum, "%q %q\n", path, content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read migrations of %s: %w", schema.Name, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
