package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// loading is one statement that puts rows of the past into a service's tables.
type loading struct {
	statement string
	arguments []any
}

// load has the statements run, one after the other, and PostgreSQL write out and know
// what they have left in these tables.
func (g *ground) load(ctx context.Context, database string, tables []string, all ...loading) error {
	if err := loadRows(ctx, g.postgres.URL(database), tables, all...); err != nil {
		return err
	}
	return g.settle(ctx)
}

func loadRows(ctx context.Context, url string, tables []string, all ...loading) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	for _, one := range all {
		if _, err := conn.Exec(ctx, one.statement, one.arguments...); err != nil {
			return fmt.Errorf("load rows of the past: %w", err)
		}
	}
	for _, table := range tables {
		if _, err := conn.Exec(ctx, "vacuum analyze "+pgx.Identifier{table}.Sanitize()); err != nil {
			return fmt.Errorf("load rows of the past: %w", err)
		}
	}
	return nil
}
