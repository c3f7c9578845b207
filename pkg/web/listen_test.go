package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"partilha.dev/pkg/auth"
)

const news = "/api/v1/news/x"

// change replaces a key while it is in use.
func (k *keyring) change(text string, change func(*auth.Key)) {
	credential, _ := auth.Parse(text)
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.keys[credential.KeyID]
	change(&key)
	k.keys[credential.KeyID] = key
}

// pipes is a listener whose connections are in memory, so that a test's own clock rules
// their deadlines.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// dial sends a GET on a new connection and returns what reads the answer.
func (p pipes) dial(path, key string) (net.Conn, *bufio.Reader) {
	client, server := net.Pipe()
	p <- server
	fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, key)
	return client, bufio.NewReader(client)
}

// overPipes runs a test against Serve with a clock of its own; stop drains the server and
// waits for its end.
func overPipes(t *testing.T, test func(s *shop, to pipes, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, to := newShop(t), make(pipes)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, to, s.handler) }()
		stopped := false
		stop := func() {
			stopped = true
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the server ends with %v", err)
			}
		}
		test(s, to, stop)
		if !stopped {
			stop()
		}
	})
}

func TestACallThatListensOutlastsTheDeadlinesOfOthers(t *testing.T) {
	overPipes(t, func(s *shop, to pipes, stop func()) {
		s.outcome = func(c *Call) (Answer, error) {
			select {
			case <-time.After(10 * time.Minute):
				return Answer{Status: http.StatusOK, Body: "at last"}, nil
			case <-c.Over():
				return Answer{}, errors.New("it was over too soon")
			}
		}
		client, answers := to.dial(news, s.key)
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, response); a.status != 200 || a.body != `"at last"` {
			t.Errorf("after ten minutes: %d %s", a.status, a.body)
		}
		fmt.Fprintf(client, "GET /api/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", s.key)
		if response, err = http.ReadResponse(answers, nil); err != nil {
			t.Fatal(err)
		}
		if a := read(t, response); a.status != 200 {
			t.Errorf("the next call on the connection: %d %s", a.status, a.body)
		}
		client.Close()
	})
}

func TestACallThatListensEndsWithItsKey(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		change func(*auth.Key)
		status int
		code   string
	}{
		"revoked":   {func(k *auth.Key) { k.RevokedAt = &now }, 401, "unauthorized"},
		"suspended": {func(k *auth.Key) { k.Suspended = true }, 403, "tenant_suspended"},
		"narrowed":  {func(k *auth.Key) { k.Scopes = auth.ScopesOf([]string{"sales:write"}) }, 403, "insufficient_scope"},
	} {
		t.Run(name, func(t *testing.T) {
			overPipes(t, func(s *shop, to pipes, stop func()) {
				s.outcome = func(c *Call) (Answer, error) {
					time.Sleep(time.Minute)
					s.keys.change(s.key, row.change)
					begun := time.Now()
					<-c.Over()
					if took := time.Since(begun); took > 2*time.Second {
						t.Errorf("the call ends %v after its key", took)
					}
					return Answer{Status: http.StatusOK, Body: "news"}, nil
				}
				client, answers := to.dial(news, s.key)
				response, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatal(err)
				}
				read(t, response).refused(name, row.status, row.code)
				client.Close()
			})
		})
	}
}

func TestDrainingEndsWhoListensAtOnceAndWithAnAnswer(t *testing.T) {
	overPipes(t, func(s *shop, to pipes, stop func()) {
		s.outcome = func(c *Call) (Answer, error) {
			<-c.Over()
			if err := c.Context().Err(); err != nil {
				t.Errorf("what the handler has to ask for its answer, it cannot: %v", err)
			}
			return Answer{Status: http.StatusOK, Body: "nothing so far"}, nil
		}
		_, answers := to.dial(news, s.key)
		synctest.Wait()
		begun := time.Now()
		go stop()
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, response); a.status != 200 || a.body != `"nothing so far"` || time.Since(begun) > 0 {
			t.Errorf("after %v: %d %s", time.Since(begun), a.status, a.body)
		}
	})
}

func TestACallThatListensIsOverWhenItsCallerLeaves(t *testing.T) {
	overPipes(t, func(s *shop, to pipes, stop func()) {
		over := make(chan bool)
		s.outcome = func(c *Call) (Answer, error) {
			<-c.Over()
			close(over)
			return Answer{Status: http.StatusOK}, nil
		}
		client, _ := to.dial(news, s.key)
		synctest.Wait()
		client.Close()
		<-over
	})
}

func TestACallThatIsAnsweredAtOnceIsNeverOver(t *testing.T) {
	s := newShop(t)
	s.outcome = func(c *Call) (Answer, error) {
		if c.Over() != nil {
			t.Error("it listens")
		}
		return Answer{Status: http.StatusNoContent}, nil
	}
	s.call("GET", outcome, "")
}

func TestListenersAreCountedApart(t *testing.T) {
	limits := usual
	limits.InFlight, limits.Listeners = 1, 2
	s := newLimitedShop(t, limits)
	listening, proceed, ended := make(chan bool), make(chan bool), make(chan answer)
	s.outcome = func(c *Call) (Answer, error) {
		listening <- true
		<-proceed
		return Answer{Status: http.StatusOK}, nil
	}
	for range limits.Listeners {
		go func() { ended <- s.call("GET", news, "") }()
		<-listening
	}
	a := s.call("GET", news, "")
	a.refused("one more", 429, "rate_limited")
	if got, want := a.header.Get("RateLimit-Policy"), `"tenant";q=2;qu="concurrent-requests"`; got != want {
		t.Errorf("RateLimit-Policy %s, want %s", got, want)
	}
	if a := s.call("GET", "/api/v1/things", ""); a.status != 200 {
		t.Errorf("a call that is answered at once: %d %s", a.status, a.body)
	}
	close(proceed)
	for range limits.Listeners {
		if a := <-ended; a.status != 200 {
			t.Errorf("one that was let in: %d %s", a.status, a.body)
		}
	}
	if len(s.limiter.underWay) != 0 {
		t.Errorf("still under way: %v", s.limiter.underWay)
	}
}

// live has the outcome be a live stream of text.
func (s *shop) live(write func(c *Call, to io.Writer) error) {
	s.outcome = func(c *Call) (Answer, error) {
		tell := func(to io.Writer) error { return write(c, to) }
		return Answer{Status: http.StatusOK, Stream: &Stream{Type: "text/event-stream", Write: tell, Live: true}}, nil
	}
}

func TestALiveStreamSendsItsHeadAndEachWriteAtOnce(t *testing.T) {
	overPipes(t, func(s *shop, to pipes, stop func()) {
		taken := make(chan bool)
		s.live(func(_ *Call, to io.Writer) error {
			for i := range 3 {
				<-taken
				time.Sleep(time.Minute)
				fmt.Fprintf(to, "line %d\n", i)
			}
			return nil
		})
		client, answers := to.dial(news, s.key)
		response, err := http.ReadResponse(answers, nil)
		if err != nil || response.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v %v", response, err)
		}
		body := bufio.NewReader(response.Body)
		for i := range 3 {
			taken <- true
			if line, err := body.ReadString('\n'); line != fmt.Sprintf("line %d\n", i) {
				t.Fatalf("%q %v", line, err)
			}
		}
		if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
			t.Errorf("it does not end well: %q %v", rest, err)
		}
		client.Close()
	})
}

func TestALiveStreamThatNobodyTakesIsBrokenOff(t *testing.T) {
	overPipes(t, func(s *shop, to pipes, stop func()) {
		broken := make(chan error, 1)
		s.live(func(_ *Call, to io.Writer) error {
			for {
				if _, err := io.WriteString(to, strings.Repeat("x", 1<<10)); err != nil {
					broken <- err
					return err
				}
			}
		})
		begun := time.Now()
		client, answers := to.dial(news, s.key)
		if _, err := http.ReadResponse(answers, nil); err != nil {
			t.Fatal(err)
		}
		if <-broken; time.Since(begun) != streamPatience {
			t.Errorf("broken off after %v", time.Since(begun))
		}
		if n := s.logs.FilterMessage("live answer ended").Len(); n > 0 {
			t.Error("a caller's slowness is logged as a failure of ours")
		}
		client.Close()
	})
}
