package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"partilha.dev/pkg/webhook"
)

const (
	// attemptTimeout is the default bound of one attempt: lookup, connecting, TLS,
	// sending, and waiting for the answer together.
	attemptTimeout = 5 * time.Second
	// maxResponse bounds what is read of a response: its head, and again its body.
	maxResponse = 16 << 10
)

// request is one webhook as it goes over the wire.
type request struct {
	URL       string
	Event     string
	Signature string      // of Body, as sign returns it
	Extra     http.Header // what the endpoint opted into; nil by default
	Body      []byte      // sent byte for byte
}

// header returns all headers that the request carries beside Host and Content-Length.
// An Idempotency-Key is never among them: Go's transport takes a POST that has one for
// repeatable and would send it a second time by itself.
func (r request) header() http.Header {
	header := http.Header{}
	maps.Copy(header, r.Extra)
	header.Del("Idempotency-Key")
	header.Del("X-Idempotency-Key")
	header.Set("Content-Type", "application/json")
	header.Set("X-Service-Event", r.Event)
	header.Set(webhook.SignatureHeader, r.Signature)
	header.Set("User-Agent", "Service-Webhook/1.0")
	return header
}

// failure says why an attempt was not delivered; "" where it was.
type failure string

const (
	failedDNS      failure = "dns"      // the name has no addresses
	failedBlocked  failure = "blocked"  // the policy refused the target; no byte was sent
	failedConnect  failure = "connect"  // nobody accepted the connection
	failedTLS      failure = "tls"      // the handshake failed, or the certificate is not trusted
	failedTimeout  failure = "timeout"  // no response head in time, whatever took so long
	failedStatus   failure = "status"   // a whole response head, but not a 2xx
	failedReset    failure = "reset"    // the connection ended before a valid response head
	failedRedirect failure = "redirect" // a 3xx that points elsewhere, which is not followed
)

// outcome is what became of one attempt.
type outcome struct {
	At         time.Time     // when it began, UTC
	Duration   time.Duration // until the response head, or until it failed
	Held       time.Duration // until nothing more was read: how long its receiver held the slot
	Delivered  bool          // a 2xx response head came in time
	StatusCode int           // 0 without a response
	Error      failure       // "" exactly if Delivered
	Excerpt    string        // of the response body: valid UTF-8 without NUL, at most 16 KiB
	RetryAfter time.Duration // what the receiver asked for by Retry-After; 0 if nothing
	Cause      error         // for the log; may name addresses, so never for the tenant
}

// sender posts webhooks. It is safe for concurrent use.
//
// It uses a transport rather than an http.Client, so there is nothing that would
// follow a redirect, keep a cookie or add a header. The transport by itself repeats a
// POST only where a reused connection turned out to be broken before one byte was
// written, which is still the first POST that a receiver sees.
type sender struct {
	judged    judgedURLs
	timeout   time.Duration
	transport *http.Transport
}

// newSender takes attemptTimeout and net.DefaultResolver.LookupNetIP in production.
func newSender(policy targetPolicy, timeout time.Duration, lookup lookupFunc) *sender {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &sender{
		judged:  judgedURLs{policy: policy, passed: map[string]bool{}},
		timeout: timeout,
		transport: &http.Transport{
			Proxy:                  nil, // also none from the environment
			DialContext:            newDialer(policy, timeout, lookup).dial,
			Protocols:              &http1,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    timeout,
			DisableCompression:     true,
			MaxIdleConns:           1024,
			MaxIdleConnsPerHost:    32,
			IdleConnTimeout:        2 * time.Second,
			MaxResponseHeaderBytes: maxResponse,
		},
	}
}

// close drops idle connections; attempts under way go on.
func (s *sender) close() { s.transport.CloseIdleConnections() }

// send makes one attempt and returns what became of it, within the timeout.
//
// Cancelling ctx does not interrupt it: the receiver may have acted on the request
// already, and nobody would know. A worker that stops waits for its attempts instead.
func (s *sender) send(ctx context.Context, r request) outcome {
	began := time.Now()
	result := outcome{At: began.UTC()}
	fail := func(why failure, cause error) outcome {
		result.Duration, result.Error, result.Cause = time.Since(began), why, cause
		result.Held = result.Duration
		return result
	}
	if err := s.judged.check(r.URL); err != nil {
		return fail(failedBlocked, err)
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) }, // also when the transport dials anew
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return fail(failedBlocked, err)
	}
	post.Header = r.header()

	response, err := s.transport.RoundTrip(post)
	if err != nil {
		return fail(classify(err, connected.Load()), err)
	}
	defer func() { _ = response.Body.Close() }() // the outcome stands already
	result.Duration = time.Since(began)
	result.StatusCode = response.StatusCode
	result.RetryAfter = retryAfter(response.Header.Get("Retry-After"), began)
	switch {
	case response.StatusCode >= 200 && response.StatusCode < 300:
		result.Delivered = true
	case response.StatusCode >= 300 && response.StatusCode < 400 && response.Header.Get("Location") != "":
		result.Error = failedRedirect
	default:
		result.Error = failedStatus
	}
	// After 101 the body is the bare connection, which the timeout would not end.
	if response.StatusCode != http.StatusSwitchingProtocols {
		// One byte too many tells a body that was cut from one that ended.
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
		result.Excerpt = excerpt(body, maxResponse)
	}
	result.Held = time.Since(began)
	return result
}

// judgedURLs remembers which URLs the policy lets through: an endpoint may be older than
// today's policy, but that does not change while a process lives. It is safe for
// concurrent use.
type judgedURLs struct {
	policy targetPolicy

	mu     sync.Mutex
	passed map[string]bool
}

// mostJudged bounds how many URLs are remembered.
const mostJudged = 10_000

// check returns why nothing may be sent to the URL; nil where something may.
func (j *judgedURLs) check(raw string) error {
	j.mu.Lock()
	passed := j.passed[raw]
	j.mu.Unlock()
	if passed {
		return nil
	}
	if _, issues := j.policy.checkURL(raw); len(issues) > 0 {
		return errors.New(issues[0].Message)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.passed) == mostJudged {
		clear(j.passed)
	}
	j.passed[raw] = true
	return nil
}

// classify names the reason for which no response head came. connected says whether
// the request had been given a connection.
func classify(err error, connected bool) failure {
	var timeout net.Error
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, errBlocked):
		return failedBlocked
	case errors.As(err, &timeout) && timeout.Timeout():
		return failedTimeout
	case connected:
		return failedReset
	case errors.As(err, &lookup):
		return failedDNS
	case errors.As(err, &op) && op.Op == "dial":
		return failedConnect
	default: // resolved and dialled, so what is left is the handshake
		return failedTLS
	}
}

// excerpt makes text of what a receiver said that a person can read and PostgreSQL can
// store: at most so many bytes, cut between characters.
func excerpt(body []byte, most int) string {
	if len(body) > most {
		body = body[:runeBoundary(body, most)]
	}
	text := strings.ToValidUTF8(string(body), "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if len(text) > most {
		text = text[:runeBoundary(text, most)]
	}
	return text
}

// runeBoundary returns the last index up to limit at which a character begins. It
// looks back three bytes at most: what is further from one is not UTF-8.
func runeBoundary[T string | []byte](text T, limit int) int {
	for i := limit; i > limit-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return limit
}

// retryAfter reads a Retry-After header, in seconds or as a date, relative to now. It
// returns 0 for none, for one that makes no sense, and for a moment in the past.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
