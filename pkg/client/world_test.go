package client_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/client"
	"partilha.dev/pkg/money"
)

const apiKey = "ptl_abcdefgh_ThisIsTheKeyThatNobodyMaySee"

var (
	saleID     = uuid.MustParse("019f60bb-3400-78de-80b3-c47f112c5974")
	campaignID = uuid.MustParse("019f60b5-3400-76b2-83c0-d5f35d1b11f9")
	planID     = uuid.MustParse("019f60b6-3400-772d-8fcf-b0c470ac255c")
	partnerID  = uuid.MustParse("019f60b3-3400-75c6-82e0-91b8c0565f1b")
)

// report is a sale of R$ 250.00.
func report(externalRef string) client.SaleReport {
	return client.SaleReport{ReferralCode: "ana", CampaignID: campaignID, PlanID: planID, Amount: money.BRL(25000), ExternalRef: externalRef}
}

const receipt = `{"sale_id":"019f60bb-3400-78de-80b3-c47f112c5974","commission_id":"019f60bb-3400-708f-8271-887ce94707da","commission_amount_brl":25.00,"idempotent":false}`

// request is one request as it arrived.
type request struct {
	what   string // the method and the address
	header http.Header
	body   string
	at     time.Time
}

// server answers calls as it is told to, and remembers them. Its network is a pipe, so
// that all of it, the HTTP of the standard library included, runs in the time of a
// synctest bubble.
type server struct {
	answer func(w http.ResponseWriter, r *http.Request, nth int) // nth counts from 1

	mu      sync.Mutex
	refuse  int // how many connections it refuses before it takes one
	heard   []request
	arrived chan net.Conn
	closed  chan struct{}
}

// inBubble runs test with a client of a server that answers so.
func inBubble(t *testing.T, options client.Options, answer func(w http.ResponseWriter, r *http.Request, nth int), test func(t *testing.T, s *server, c *client.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: answer, arrived: make(chan net.Conn), closed: make(chan struct{})}
		web := &http.Server{Handler: s}
		go web.Serve(s)
		defer web.Close()
		transport := &http.Transport{DialContext: s.dial}
		defer transport.CloseIdleConnections()
		options.Transport = transport
		c, err := client.New("http://partilha.test/", apiKey, options)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s, c)
	})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.heard = append(s.heard, request{r.Method + " " + r.URL.RequestURI(), r.Header, string(body), time.Now()})
	nth := len(s.heard)
	s.mu.Unlock()
	s.answer(w, r, nth)
}

// requests are those that have arrived.
func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	refused := s.refuse > 0
	s.refuse--
	s.mu.Unlock()
	if refused {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	select {
	case s.arrived <- far:
		return near, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *server) Accept() (net.Conn, error) {
	select {
	case conn := <-s.arrived:
		return conn, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *server) Close() error {
	close(s.closed)
	return nil
}

func (s *server) Addr() net.Addr { return &net.TCPAddr{} }

// say answers with a status and a JSON body.
func say(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// refusal is the body of an error.
func refusal(code, message string) string {
	return fmt.Sprintf(`{"code":%q,"message":%q,"request_id":"req-1"}`, code, message)
}

// tear breaks the connection after the request has been read, with nothing or a part of
// an answer on it.
func tear(w http.ResponseWriter, part string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, part)
	conn.Close()
}

// leaks tells whether a text shows the key.
func leaks(text string) bool { return strings.Contains(text, "ThisIsTheKey") }
