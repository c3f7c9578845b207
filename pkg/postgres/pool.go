// Package postgres is all that the services share about PostgreSQL: a pool,
// transactions, what an error means, migrations, and partitions by day.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"partilha.dev/pkg/trace"
)

// Open makes a pool of at most size connections and checks that one works.
//
// Times are read in UTC. A statement is prepared once per connection; traces carry
// statements but never their arguments.
func Open(ctx context.Context, url string, size int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read DATABASE_URL: %w", err)
	}
	config.MaxConns = int32(size)
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = 5 * time.Second
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	config.ConnConfig.DialFunc = dial
	if trace.Enabled() {
		config.ConnConfig.Tracer = otelpgx.NewTracer()
	}
	otherwise := config.ConnConfig.OnPgError
	config.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) (keep bool) {
		return err.Code != readOnly && otherwise(conn, err) // the next connection may lead to the server that is the primary now
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		pgxuuid.Register(conn.TypeMap()) // without it pgx writes every UUID as text first
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID,
			Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach PostgreSQL: %w", err)
	}
	return pool, nil
}
