package postgres

import (
	"fmt"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), in milliseconds, which the package syscall
// does not name.
const tcpUserTimeout = 18

// limitSilence ends the connection when what was sent stays unconfirmed for so long.
func limitSilence(socket syscall.RawConn, limit time.Duration) error {
	var failure error
	err := socket.Control(func(fd uintptr) {
		failure = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(limit.Milliseconds()))
	})
	if err == nil {
		err = failure
	}
	if err != nil {
		return fmt.Errorf("limit the silence of a connection: %w", err)
	}
	return nil
}
