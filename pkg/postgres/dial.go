package postgres

import (
	"context"
	"net"
	"strings"
	"syscall"
	"time"
)

// goneAfter is how long a server's host may say nothing at all before its connections are
// given up. A host that has lost its power closes none: without this a statement would
// wait for as long as the system tries, which is a quarter of an hour.
const goneAfter = 25 * time.Second

// dial connects to a server, or to the socket of one. A server that thinks for long is
// not a host that is gone, since its system answers.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: goneAfter / 5 * 2, Interval: goneAfter / 5, Count: 3},
		Control: func(network, _ string, socket syscall.RawConn) error {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			return limitSilence(socket, goneAfter)
		},
	}
	return dialer.DialContext(ctx, network, address)
}
