package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"
)

const (
	freeWithin  = 500 * time.Millisecond // for a connection of the pool to be free and to answer
	reachWithin = 2 * time.Second        // for the server to be reached at all
)

// tooManyConnections is what a server says that is there, and has no room for one more.
const tooManyConnections = "53300"

// reaching has whoever asks at the same time share one look, so that a storm of questions
// is not one of connections.
var reaching singleflight.Group

// Reach returns an error if the pool's server cannot be reached. That all connections of
// the pool are taken is none: then it is asked over a connection of its own.
func Reach(ctx context.Context, pool *pgxpool.Pool) error {
	looked := reaching.DoChan(fmt.Sprintf("%p", pool), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachWithin)
		defer cancel()
		return nil, reach(ctx, pool)
	})
	select {
	case l := <-looked:
		return l.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func reach(ctx context.Context, pool *pgxpool.Pool) error {
	free, cancel := context.WithTimeout(ctx, freeWithin)
	defer cancel()
	if err := pool.Ping(free); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return conn.Close(ctx)
	case errors.As(err, &pg) && pg.Code == tooManyConnections:
		return nil
	default:
		return err
	}
}
