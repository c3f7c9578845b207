package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// StartStandby brings up a hot standby of the primary on o.Dir, as a copy of it where
// the folder is empty, and returns when no commit of the primary is answered any more
// before the standby has it on its disk. A standby that is away holds up every commit.
//
// Both run as the same user, and a standby has at least the MaxConnections of its primary.
func StartStandby(ctx context.Context, primary *Server, o Options) (*Server, error) {
	o.follows = primary
	standby, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := primary.waitForStandby(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a PostgreSQL standby: %w", err), standby.Kill())
	}
	return standby, nil
}

// copyTo are the arguments with which pg_basebackup copies this server into data, as a
// standby that follows it.
func (s *Server) copyTo(data string) []string {
	return []string{
		"--pgdata=" + data, "--host=" + s.current().socket, "--port=" + port, "--username=" + user,
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-password",
	}
}

// waitForStandby has every commit wait for a standby from now on.
func (s *Server) waitForStandby(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range []string{"alter system set synchronous_standby_names = '*'", "select pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for {
		var following bool
		const query = "select exists (select from pg_stat_replication where sync_state = 'sync' and state = 'streaming')"
		if err := conn.QueryRow(ctx, query).Scan(&following); err != nil || following {
			return err
		}
		pause(ctx)
	}
}

// Promote makes a primary of a standby and returns when it takes writes. Whether the
// primary that it followed is really down is for the caller to know.
func (s *Server) Promote(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("promote PostgreSQL on %s: %w", s.cluster.dir, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var promoted bool
	if err := conn.QueryRow(ctx, "select pg_promote(true, 60)").Scan(&promoted); err != nil {
		return fmt.Errorf("promote PostgreSQL on %s: %w", s.cluster.dir, err)
	}
	if !promoted {
		return fmt.Errorf("promote PostgreSQL on %s: it still follows", s.cluster.dir)
	}
	return nil
}

// WritableURL is the address of a database on whichever of the servers takes writes at
// the moment of connecting, for pgx and psql.
func WritableURL(database string, servers ...*Server) string {
	hosts, ports := make([]string, len(servers)), make([]string, len(servers))
	for i, s := range servers {
		hosts[i], ports[i] = s.current().socket, port
	}
	return addressOf(database, url.Values{
		"host": {strings.Join(hosts, ",")}, "port": {strings.Join(ports, ",")}, "target_session_attrs": {"read-write"},
	})
}
