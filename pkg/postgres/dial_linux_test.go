package postgres

import (
	"net"
	"syscall"
	"testing"
)

// No host loses its power here; what is looked at is what the system was told.
func TestAHostThatSaysNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	socket, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, option := range []struct {
		name               string
		level, option, set int
	}{
		{"what was sent is unconfirmed, milliseconds", syscall.IPPROTO_TCP, tcpUserTimeout, 25_000},
		{"keep-alive", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{"seconds before the first probe", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 10},
		{"seconds to the next probe", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 5},
		{"probes", syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3},
	} {
		if err := socket.Control(func(fd uintptr) {
			got, err := syscall.GetsockoptInt(int(fd), option.level, option.option)
			if err != nil || got != option.set {
				t.Errorf("%s: %d, %v; want %d", option.name, got, err, option.set)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASocketOfTheMachineIsDialledAsWell(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/socket"
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := dial(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
