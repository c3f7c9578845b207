package webhooks

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	patient   = time.Minute            // for attempts that must end by themselves
	impatient = 300 * time.Millisecond // for attempts that must be cut
)

// sampleBody is longer than one packet and not plain ASCII.
var sampleBody = []byte(`{"event":"partner.created","data":{"name":"São João ` + strings.Repeat("é", 2000) + `"}}`)

// receiver is a server that sees raw connections.
type receiver struct {
	addr     string
	accepted atomic.Int32
	requests atomic.Int32 // whole requests read by readRequest
}

// receive runs answer on every connection, and closes it afterwards.
func receive(t *testing.T, answer func(r *receiver, conn net.Conn)) *receiver {
	t.Helper()
	listener, _ := listen(t, "127.0.0.1", 0)
	r := &receiver{addr: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			go func() {
				defer conn.Close()
				answer(r, conn)
			}()
		}
	}()
	return r
}

// readRequest reads one whole request; nil once the connection has ended.
func (r *receiver) readRequest(in *bufio.Reader) *http.Request {
	got, err := http.ReadRequest(in)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, got.Body); err != nil {
		return nil
	}
	r.requests.Add(1)
	return got
}

// answering replies with the same bytes to the first request of each connection.
func answering(response string) func(*receiver, net.Conn) {
	return func(r *receiver, conn net.Conn) {
		if r.readRequest(bufio.NewReader(conn)) != nil {
			_, _ = io.WriteString(conn, response)
		}
	}
}

// hold keeps a connection open until the other side ends it.
func hold(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// sendTo makes one attempt under the local stack's policy.
func sendTo(t *testing.T, timeout time.Duration, url string) outcome {
	t.Helper()
	s := newSender(localPolicy, timeout, net.DefaultResolver.LookupNetIP)
	defer s.close()
	return s.send(t.Context(), sample(url))
}

func sample(url string) request {
	return request{URL: url, Event: "partner.created", Signature: sign("whsec_test", sampleBody), Body: sampleBody}
}

func mustBeDelivered(t *testing.T, got outcome, status int) {
	t.Helper()
	if !got.Delivered || got.Error != "" || got.StatusCode != status || got.Cause != nil {
		t.Errorf("outcome %+v, want delivered with status %d", got, status)
	}
}

func mustHaveFailed(t *testing.T, got outcome, why failure, status int) {
	t.Helper()
	if got.Delivered || got.Error != why || got.StatusCode != status {
		t.Errorf("outcome %+v, want %s with status %d", got, why, status)
	}
	if status == 0 && got.Cause == nil {
		t.Error("no cause for the log")
	}
}
