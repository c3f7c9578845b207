package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"partilha.dev/pkg/fault"
)

// Explain turns an error of the driver that means "not now" into a fault of kind
// Unavailable: a lost or refused connection, a server that is shutting down or
// starting, no free connection, a full disk, a server that takes no writes, a transaction
// that was ended for its length, a deadlock that may be tried again.
// Every other error, and a fault, passes unchanged.
func Explain(err error) error {
	if err == nil || fault.Of(err) != nil {
		return err
	}
	if unavailable(err) {
		return fault.Unreachable(err)
	}
	return err
}

// readOnly is what a server says to whoever writes while it takes no writes: one that was
// a primary once, or that has no room left.
const readOnly = "25006"

func unavailable(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return true // whatever the server's reason: there is no connection
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch class := pg.Code[:min(2, len(pg.Code))]; class {
		case "08", "53", "57", "58": // connection, resources, operator intervention, system
			return true
		}
		switch pg.Code {
		case "40001", "40P01", "55P03", readOnly, "25P03", "25P04":
			return true
		}
		return false
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		pgconn.Timeout(err) || strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool")
}

// Violates tells whether err is a violation of the named constraint or unique index.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, "23") && pg.ConstraintName == constraint
}

// Absent tells whether err says that a query found no row.
func Absent(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// NoPartition tells whether a row was refused because no partition holds its day.
func NoPartition(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23514" && strings.HasPrefix(pg.Message, "no partition")
}
