package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// foreignPostgres makes the services' databases on a server that is not ours. The
// user that the URL names must be allowed to create databases.
func foreignPostgres(ctx context.Context, base string) (func(string) string, error) {
	parsed, err := url.Parse(base)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, errors.New("DATABASE_URL is not of the form postgres://user:password@host:port/database")
	}
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("cannot reach PostgreSQL at DATABASE_URL (host %s): %w", parsed.Host, reason(err))
	}
	defer conn.Close(ctx)
	for _, name := range serviceNames {
		_, err := conn.Exec(ctx, "create database "+pgx.Identifier{databaseName(name)}.Sanitize())
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "42P04" {
			continue // it is there already
		}
		if err != nil {
			return nil, fmt.Errorf("cannot create database %s at DATABASE_URL: %w", databaseName(name), reason(err))
		}
	}
	return func(database string) string {
		other := *parsed
		other.Path = "/" + database
		return other.String()
	}, nil
}

// reason is what the server or the network said, without the connection's details.
func reason(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return errors.New(refused.Message)
	}
	return plain(err)
}
