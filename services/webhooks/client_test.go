package webhooks

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTheRequestIsExactlyWhatIsPromised(t *testing.T) {
	raw := make(chan []byte, 1)
	r := receive(t, func(_ *receiver, conn net.Conn) {
		var seen bytes.Buffer
		got, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &seen)))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, got.Body)
		raw <- seen.Bytes()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	before := time.Now()
	got := sendTo(t, patient, "http://"+r.addr+"/hooks?source=partilha")
	mustBeDelivered(t, got, 200)
	if got.Excerpt != "ok" || got.At.Before(before) || got.At.Location() != time.UTC || got.Duration <= 0 {
		t.Errorf("outcome %+v", got)
	}

	head, body, _ := bytes.Cut(<-raw, []byte("\r\n\r\n"))
	lines := strings.Split(string(head), "\r\n")
	if lines[0] != "POST /hooks?source=partilha HTTP/1.1" {
		t.Errorf("request line %q", lines[0])
	}
	want := []string{
		"Content-Length: " + fmt.Sprint(len(sampleBody)),
		"Content-Type: application/json",
		"Host: " + r.addr,
		"User-Agent: Service-Webhook/1.0",
		"X-Service-Event: partner.created",
		"X-Service-Signature: " + sign("whsec_test", sampleBody),
	}
	if headers := slices.Sorted(slices.Values(lines[1:])); !slices.Equal(headers, want) {
		t.Errorf("headers\n%q\nwant\n%q", headers, want)
	}
	if !bytes.Equal(body, sampleBody) {
		t.Error("the body arrived with other bytes")
	}
}

func TestOptedHeadersRideAlongAndCannotReplaceTheFixedOnes(t *testing.T) {
	r := request{Event: "sale.recorded", Signature: "sha256=ab", Extra: http.Header{
		"webhook-id": {"evt_1"}, "User-Agent": {"other"}, "Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"},
	}}
	got := r.header()
	want := http.Header{
		"webhook-id": {"evt_1"}, "Content-Type": {"application/json"}, "X-Service-Event": {"sale.recorded"},
		"X-Service-Signature": {"sha256=ab"}, "User-Agent": {"Service-Webhook/1.0"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("header %v, want %v", got, want)
	}
}

func TestEveryStatusHasItsOutcome(t *testing.T) {
	for status, why := range map[int]failure{
		200: "", 201: "", 204: "", 299: "",
		300: failedStatus, 304: failedStatus, 399: failedStatus, // which point nowhere
		400: failedStatus, 401: failedStatus, 404: failedStatus, 410: failedStatus, 429: failedStatus,
		500: failedStatus, 503: failedStatus, 600: failedStatus,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			r := receive(t, answering(fmt.Sprintf("HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n", status)))
			got := sendTo(t, patient, "http://"+r.addr)
			if got.Error != why || got.Delivered != (why == "") || got.StatusCode != status {
				t.Errorf("outcome %+v, want %q", got, why)
			}
			if r.requests.Load() != 1 {
				t.Errorf("%d requests arrived", r.requests.Load())
			}
		})
	}
}

func TestInformationalResponsesAreNotTheAnswer(t *testing.T) {
	r := receive(t, answering("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"))
	mustBeDelivered(t, sendTo(t, patient, "http://"+r.addr), 202)
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{300, 301, 302, 303, 307, 308, 399} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			elsewhere, port := listen(t, "127.0.0.1", 0)
			r := receive(t, answering(fmt.Sprintf("HTTP/1.1 %d Moved\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 5\r\n\r\nmoved", status, port)))
			got := sendTo(t, patient, "http://"+r.addr)
			mustHaveFailed(t, got, failedRedirect, status)
			if got.Excerpt != "moved" {
				t.Errorf("excerpt %q", got.Excerpt)
			}
			mustBeUntouched(t, elsewhere)
		})
	}
}

func TestABlockedAttemptTouchesNobody(t *testing.T) {
	private, port := listen(t, "127.0.0.1", 0)
	public, _ := listen(t, "127.0.0.2", port)
	attempt := func(t *testing.T, policy targetPolicy, host string, lookup lookupFunc) {
		t.Helper()
		s := newSender(policy, patient, lookup)
		defer s.close()
		mustHaveFailed(t, s.send(t.Context(), sample(fmt.Sprintf("http://%s:%d/", host, port))), failedBlocked, 0)
	}
	t.Run("a name with a public and a private address", func(t *testing.T) {
		attempt(t, outsidePolicy, "shop.example", answers([]string{"127.0.0.2", "127.0.0.1"}))
	})
	t.Run("a name that means loopback", func(t *testing.T) {
		attempt(t, outsidePolicy, "shop.example", answers([]string{"127.0.0.1"}))
	})
	t.Run("a name that means an IPv4 address in IPv6", func(t *testing.T) {
		attempt(t, outsidePolicy, "shop.example", answers([]string{"::ffff:127.0.0.1"}))
	})
	t.Run("a literal", func(t *testing.T) {
		attempt(t, outsidePolicy, "127.0.0.1", answers([]string{"127.0.0.2"}))
	})
	t.Run("another spelling of it", func(t *testing.T) {
		attempt(t, outsidePolicy, "2130706433", answers([]string{"127.0.0.1"}))
	})
	t.Run("an endpoint that today's policy would not take", func(t *testing.T) {
		attempt(t, targetPolicy{Ports: portSet{any: true}, AllowNets: loopback}, "127.0.0.1", answers([]string{"127.0.0.1"}))
	})
	mustBeUntouched(t, private)
	mustBeUntouched(t, public)
}

func TestANameThatChangesItsMindIsBlocked(t *testing.T) {
	private, port := listen(t, "127.0.0.1", 0)
	public, _ := listen(t, "127.0.0.2", port)
	go func() {
		conn, err := public.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		(&receiver{}).readRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	}()
	s := newSender(outsidePolicy, patient, answers([]string{"127.0.0.2"}, []string{"127.0.0.1"}))
	defer s.close()
	url := fmt.Sprintf("http://shop.example:%d/", port)
	mustBeDelivered(t, s.send(t.Context(), sample(url)), 200)
	mustHaveFailed(t, s.send(t.Context(), sample(url)), failedBlocked, 0)
	mustBeUntouched(t, private)
}

func TestTheWorkerStoppingDoesNotInterruptAnAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := receive(t, func(r *receiver, conn net.Conn) {
		cancel()
		answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(r, conn)
	})
	s := newSender(localPolicy, patient, net.DefaultResolver.LookupNetIP)
	defer s.close()
	mustBeDelivered(t, s.send(ctx, sample("http://"+r.addr)), 200)
}

func TestAConnectionIsReusedButAPostIsNeverRepeated(t *testing.T) {
	r := receive(t, func(r *receiver, conn net.Conn) {
		in := bufio.NewReader(conn)
		if r.readRequest(in) == nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		r.readRequest(in) // and hang up
	})
	s := newSender(localPolicy, patient, net.DefaultResolver.LookupNetIP)
	defer s.close()
	second := sample("http://" + r.addr)
	second.Extra = http.Header{"Idempotency-Key": {"evt_1"}}

	mustBeDelivered(t, s.send(t.Context(), sample("http://"+r.addr)), 200)
	mustHaveFailed(t, s.send(t.Context(), second), failedReset, 0)
	if r.accepted.Load() != 1 || r.requests.Load() != 2 {
		t.Errorf("%d connections, %d requests; want 1 and 2", r.accepted.Load(), r.requests.Load())
	}
}

// brokenLater is a connection that takes one request and then breaks without having
// taken a byte of the next.
type brokenLater struct {
	net.Conn
	writes atomic.Int32
}

func (c *brokenLater) Write(p []byte) (int, error) {
	if c.writes.Add(1) > 1 {
		return 0, &net.OpError{Op: "write", Err: syscall.EPIPE}
	}
	return c.Conn.Write(p)
}

func TestAConnectionThatBrokeUnusedIsReplaced(t *testing.T) {
	r := receive(t, func(r *receiver, conn net.Conn) {
		answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(r, conn)
		hold(conn)
	})
	small := sample("http://" + r.addr)
	small.Body = []byte("{}") // goes out in one write
	// sendTwice breaks the first connection under the second request.
	sendTwice := func(t *testing.T, redial func(ctx context.Context, network, addr string) (net.Conn, error)) outcome {
		t.Helper()
		s := newSender(localPolicy, patient, net.DefaultResolver.LookupNetIP)
		defer s.close()
		dial := s.transport.DialContext
		s.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			s.transport.DialContext = redial
			conn, err := dial(ctx, network, addr)
			return &brokenLater{Conn: conn}, err
		}
		mustBeDelivered(t, s.send(t.Context(), small), 200)
		return s.send(t.Context(), small)
	}
	t.Run("and the receiver sees the request once", func(t *testing.T) {
		got := sendTwice(t, newDialer(localPolicy, patient, nil).dial)
		mustBeDelivered(t, got, 200)
		if r.accepted.Load() != 2 || r.requests.Load() != 2 {
			t.Errorf("%d connections, %d requests; want 2 and 2", r.accepted.Load(), r.requests.Load())
		}
	})
	t.Run("and if that cannot be done, the new connection is what failed", func(t *testing.T) {
		got := sendTwice(t, func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		})
		mustHaveFailed(t, got, failedConnect, 0)
	})
}

func TestTheTransportIsBounded(t *testing.T) {
	transport := newSender(targetPolicy{}, attemptTimeout, nil).transport
	if transport.Proxy != nil {
		t.Error("a proxy could be taken from the environment")
	}
	if transport.IdleConnTimeout != 2*time.Second || transport.MaxIdleConnsPerHost != 32 {
		t.Errorf("idle connections live %s, %d of a host", transport.IdleConnTimeout, transport.MaxIdleConnsPerHost)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "2147483647": 2147483647 * time.Second,
		"-1": 0, "1.5": 0, "soon": 0, "99999999999999999999": 0,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:59:00 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", value, got, want)
		}
	}
	r := receive(t, answering("HTTP/1.1 503 Later\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"))
	if got := sendTo(t, patient, "http://"+r.addr); got.RetryAfter != 7*time.Second {
		t.Errorf("outcome %+v", got)
	}
}

// Whoever reads the log did not ask for what a stranger's server says.
func TestOfWhatAReceiverSaysOnlyTheBeginningComesToTheLog(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(strings.Repeat("ã\x00", maxResponse/4)+"\r\n\r\n"))
	got := sendTo(t, patient, "http://"+r.addr)
	mustHaveFailed(t, got, failedReset, 0)
	if said := got.Cause.Error(); len(said) < maxResponse/2 {
		t.Fatalf("the error quotes only %d bytes", len(said))
	}
	if text := (attempt{outcome: got}).cause(); len(text) > maxCause || len(text) < maxCause/2 || !utf8.ValidString(text) {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	if text := (attempt{}).cause(); text != "" {
		t.Errorf("without a cause: %q", text)
	}
}
