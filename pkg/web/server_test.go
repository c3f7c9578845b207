package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is for what must happen, where the time that it takes is not the promise.
const patience = time.Minute

// server is Serve on a real listener.
type server struct {
	t        *testing.T
	addr     string
	url      string
	shutdown func()       // asks it to end
	ended    func() error // waits for its end
}

func serve(t *testing.T, handler http.Handler) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- Serve(ctx, listener, handler) }()
	ended := sync.OnceValue(func() error {
		select {
		case err := <-result:
			return err
		case <-time.After(patience):
			return errors.New("it does not end")
		}
	})
	t.Cleanup(func() { cancel(); ended() })
	addr := listener.Addr().String()
	return &server{t: t, addr: addr, url: "http://" + addr, shutdown: cancel, ended: ended}
}

// dial opens a connection that the test's end closes.
func (s *server) dial() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// raw sends these bytes on a connection of their own and reads the answer.
func (s *server) raw(text string) answer {
	s.t.Helper()
	conn := s.dial()
	go io.WriteString(conn, text) // the server may answer before it has read all
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatalf("read the answer to %.60q: %v", text, err)
	}
	return read(s.t, response)
}

func TestABodyHas64KiBAndNotAByteMore(t *testing.T) {
	s := newShop(t)
	server := serve(t, s.handler)
	bodyOf := func(size int) string {
		return `{"name":"x"` + strings.Repeat(" ", size-len(`{"name":"x"}`)) + `}`
	}
	for _, chunked := range []bool{false, true} {
		for size, want := range map[int]int{64<<10 - 1: 201, 64 << 10: 201, 64<<10 + 1: 413, 1 << 20: 413} {
			var body io.Reader = strings.NewReader(bodyOf(size))
			if chunked {
				body = io.MultiReader(body) // of a length that the client does not know
			}
			r, err := http.NewRequest("POST", server.url+"/api/v1/things", body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+s.key)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatalf("%d bytes, chunked %t: %v", size, chunked, err)
			}
			a := read(t, response)
			if what := fmt.Sprintf("%d bytes, chunked %t", size, chunked); want == 413 {
				a.refused(what, 413, "payload_too_large")
			} else if a.status != want {
				t.Errorf("%s: %d %s", what, a.status, a.body)
			}
		}
	}
}

func TestABodyThatClaimsToBeTooLargeIsRefusedUnread(t *testing.T) {
	s := newShop(t)
	a := serve(t, s.handler).raw("POST /api/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\nContent-Length: 65537\r\n\r\n")
	a.refused("a claim", 413, "payload_too_large")
}

func TestABodyThatIsBrokenOffIsInvalid(t *testing.T) {
	s := newShop(t)
	a := serve(t, s.handler).raw("POST /api/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key +
		"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{\"name\":\"x\"}\r\n0\r\n\r\n")
	a.refused("a bad chunk", 400, "invalid_body")
}

func TestTheHeadHas16KiB(t *testing.T) {
	s := newShop(t)
	server := serve(t, s.handler)
	head := func(size int) string {
		text := "GET /api/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\nX-Filler: "
		return text + strings.Repeat("x", size-len(text)-4) + "\r\n\r\n"
	}
	if a := server.raw(head(16<<10 - 64)); a.status != 200 {
		t.Errorf("a head of nearly 16 KiB: %d %s", a.status, a.body)
	}
	if a := server.raw(head(16<<10 + 64)); a.status != 431 {
		t.Errorf("a head of over 16 KiB: %d %s", a.status, a.body)
	}
	if a := server.raw("GET /" + strings.Repeat("x", 17<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n"); a.status != 431 {
		t.Errorf("a path of 17 KiB: %d %s", a.status, a.body)
	}
}

func TestOPTIONSOfTheWholeServerIsOursToo(t *testing.T) {
	a := serve(t, newShop(t).handler).raw("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
	a.refused("OPTIONS *", 404, "not_found")
}

// drip writes one byte of text each quarter of a second until that fails, or the
// connection is closed at the test's end.
func drip(conn net.Conn, text io.Reader) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := io.CopyN(conn, text, 1); err != nil {
			return
		}
	}
}

func TestAHeadThatTricklesIsCutOffAfterFiveSeconds(t *testing.T) {
	t.Parallel()
	conn := serve(t, newShop(t).handler).dial()
	start := time.Now()
	go drip(conn, strings.NewReader("GET /api/v1/things HTTP/1.1\r\nX-Filler: "+strings.Repeat("x", 1000)))
	_, err := io.Copy(io.Discard, conn)
	if took := time.Since(start); took < 4500*time.Millisecond || took > 8*time.Second || isTimeout(err) {
		t.Errorf("closed after %s, %v", took, err)
	}
}

func TestABodyThatTricklesIsCutOffAfterTenSeconds(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	conn := serve(t, s.handler).dial()
	start := time.Now()
	head := "POST /api/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\nContent-Length: 1000\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	go drip(conn, strings.NewReader(`{"name":"`+strings.Repeat("x", 1000)))
	received, err := io.ReadAll(conn)
	if took := time.Since(start); took < 9500*time.Millisecond || took > 14*time.Second || isTimeout(err) {
		t.Errorf("closed after %s, %v", took, err)
	}
	if len(received) > 0 {
		response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(received)), nil)
		if err != nil {
			t.Fatal(err)
		}
		read(t, response).refused("a slow body", 408, "request_timeout")
	}
	if s.handled.Load() != 0 {
		t.Error("a handler was called")
	}
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// hold makes a shop whose outcome waits until it is released.
func hold(t *testing.T) (s *shop, entered <-chan struct{}, release func()) {
	s = newShop(t)
	in, out := make(chan struct{}), make(chan struct{})
	s.outcome = func(*Call) (Answer, error) {
		close(in)
		<-out
		return Answer{Status: http.StatusOK, Body: "done"}, nil
	}
	release = sync.OnceFunc(func() { close(out) })
	t.Cleanup(release)
	return s, in, release
}

func (s *server) ask(key string) <-chan string {
	result := make(chan string, 1)
	go func() {
		r, err := http.NewRequest("GET", s.url+"/api/v1/outcomes/x", nil)
		if err != nil {
			result <- err.Error()
			return
		}
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			result <- err.Error()
			return
		}
		defer response.Body.Close()
		raw, _ := io.ReadAll(response.Body)
		result <- fmt.Sprintf("%d %s", response.StatusCode, raw)
	}()
	return result
}

func TestARequestUnderWayIsAnsweredAtTheEnd(t *testing.T) {
	s, entered, release := hold(t)
	server := serve(t, s.handler)
	result := server.ask(s.key)
	<-entered

	server.shutdown()
	for { // until nobody new gets in
		conn, err := net.Dial("tcp", server.addr)
		if err != nil {
			break
		}
		conn.Close()
	}
	select {
	case got := <-result:
		t.Fatalf("answered too early: %s", got)
	default:
	}
	release()

	if got := <-result; got != `200 "done"` {
		t.Errorf("the answer is %s", got)
	}
	if err := server.ended(); err != nil {
		t.Errorf("Serve returns %v", err)
	}
}

func TestARequestThatNeverEndsHoldsUpTheEndForTenSeconds(t *testing.T) {
	t.Parallel()
	s, entered, _ := hold(t)
	server := serve(t, s.handler)
	result := server.ask(s.key)
	<-entered

	start := time.Now()
	server.shutdown()

	if err := server.ended(); err == nil || !strings.Contains(err.Error(), "drain HTTP") {
		t.Errorf("Serve returns %v", err)
	}
	if took := time.Since(start); took < 9500*time.Millisecond || took > 14*time.Second {
		t.Errorf("it took %s", took)
	}
	if got := <-result; strings.HasPrefix(got, "200") {
		t.Errorf("the answer is %s", got)
	}
}

func TestServeSaysWhyItCannotServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := Serve(t.Context(), listener, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "serve HTTP") {
		t.Errorf("Serve returns %v", err)
	}
}
