package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

// Schema is one component's tables: its migrations, and which of its tables are
// partitioned by day. Several schemas live in one database, each with a version
// of its own, so that a shared component moves on without its users' numbering.
type Schema struct {
	Name       string // part of the version table's name: lower-case letters
	FS         fs.FS  // goose migrations, NNNNN_name.sql, at the root
	Partitions []Partition
}

// Embedded returns the folder "migrations" of what a package embeds.
func Embedded(files embed.FS) fs.FS {
	root, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder's name is well-formed
	}
	return root
}

// ErrPending means that a database lacks migrations which this binary needs.
var ErrPending = errors.New("migrations are pending")

// Migrate brings the database at url to the newest version of every schema and
// makes today's partitions. It may be called from several processes at once: one
// works, the others wait for it and find nothing left to do.
func Migrate(ctx context.Context, url string, schemas ...Schema) error {
	if err := eachProvider(url, schemas, func(_ string, p *goose.Provider) error {
		_, err := p.Up(ctx)
		return err
	}); err != nil {
		return err
	}
	pool, err := Open(ctx, url, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, schema := range schemas {
		if err := EnsurePartitions(ctx, pool, schema.Partitions); err != nil {
			return err
		}
	}
	return nil
}

// CheckMigrated returns ErrPending, with the names, where a schema is behind this
// binary, and nil where nothing is left to apply.
func CheckMigrated(ctx context.Context, url string, schemas ...Schema) error {
	var behind []string
	err := eachProvider(url, schemas, func(name string, p *goose.Provider) error {
		pending, err := p.HasPending(ctx)
		if pending {
			behind = append(behind, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(behind) > 0 {
		return fmt.Errorf("%w (%s): run the migrate command first, or serve with MIGRATE=on", ErrPending, strings.Join(behind, ", "))
	}
	return nil
}

// Whoever waits for another process to migrate looks again every second, for five minutes.
const (
	lockPeriod   = 1 // seconds
	lockAttempts = 300
)

func eachProvider(url string, schemas []Schema, visit func(name string, p *goose.Provider) error) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer db.Close()
	for _, schema := range schemas {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPeriod, lockAttempts))
		if err != nil {
			return fmt.Errorf("prepare migration lock: %w", err)
		}
		store, err := database.NewStore(goose.DialectPostgres, "schema_version_"+strings.ToLower(schema.Name))
		if err != nil {
			return fmt.Errorf("prepare version table of %s: %w", schema.Name, err)
		}
		provider, err := goose.NewProvider("", db, schema.FS,
			goose.WithStore(store), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return fmt.Errorf("read migrations of %s: %w", schema.Name, err)
		}
		if err := visit(schema.Name, provider); err != nil {
			return fmt.Errorf("migrate %s: %w", schema.Name, err)
		}
	}
	return nil
}
