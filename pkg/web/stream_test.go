package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"partilha.dev/pkg/fault"
)

// streaming has the outcome be a stream of text.
func (s *shop) streaming(write func(io.Writer) error) {
	s.outcome = func(*Call) (Answer, error) {
		return Answer{Status: http.StatusOK, Stream: &Stream{Type: "text/csv", Write: write}, Header: map[string]string{"Vary": "Accept"}}, nil
	}
}

const outcome = "/api/v1/outcomes/stream"

func TestAStreamIsSentWithItsTypeAndHeaders(t *testing.T) {
	s := newShop(t)
	for _, text := range []string{"", "a,b\r\n", strings.Repeat("a line\n", 100_000)} {
		s.streaming(func(to io.Writer) error { _, err := io.WriteString(to, text); return err })
		answer := s.call("GET", outcome, "")
		if answer.status != 200 || answer.body != text || answer.header.Get("Content-Type") != "text/csv" || answer.header.Get("Vary") != "Accept" || answer.header.Get("X-Request-Id") == "" {
			t.Errorf("%d bytes: %d %v, %d bytes", len(text), answer.status, answer.header, len(answer.body))
		}
	}
}

func TestAStreamThatFailsBeforeItIsSentIsRefusedLikeAnyCall(t *testing.T) {
	s := newShop(t)
	s.streaming(func(to io.Writer) error {
		io.WriteString(to, "the beginning")
		return fault.Unreachable(errors.New("gone"))
	})
	s.call("GET", outcome, "").refused("a failing stream", 503, "unavailable")
}

func TestAStreamThatFailsInTheMiddleIsBrokenOff(t *testing.T) {
	s := newShop(t)
	s.streaming(func(to io.Writer) error {
		io.WriteString(to, strings.Repeat("x", 2*streamBuffer))
		return errors.New("gone")
	})
	server := serve(t, s.handler)
	request, err := http.NewRequest("GET", server.url+outcome, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("half an answer of %d bytes reads like a whole one", len(body))
	}
}

func TestAStreamReachesTheCallerBeforeItEnds(t *testing.T) {
	s := newShop(t)
	seen := make(chan struct{})
	s.streaming(func(to io.Writer) error {
		io.WriteString(to, strings.Repeat("x", streamBuffer+1))
		<-seen
		return nil
	})
	server := serve(t, s.handler)
	conn := server.dial()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", outcome, s.key)
	if _, err := io.ReadFull(conn, make([]byte, streamBuffer)); err != nil {
		t.Error(err)
	}
	close(seen)
	if _, err := io.ReadAll(conn); err != nil {
		t.Error(err)
	}
}

func TestATypeIsAcceptedWhereItIsNamed(t *testing.T) {
	s := newShop(t)
	for accept, want := range map[string]bool{
		"text/csv": true, "TEXT/CSV;q=0.5": true, "application/json, text/csv": true, "text/csv; header=present": true, "text/csv;q=0.001": true,
		"": false, "*/*": false, "text/*": false, "application/json": false, "text/csv;q=0": false, "text/csv;q=0.000": false, "text/csvx": false, ";;": false,
	} {
		got := false
		s.outcome = func(c *Call) (Answer, error) {
			got = c.Accepts("text/csv")
			return Answer{Status: 204}, nil
		}
		s.call("GET", outcome, "", "Accept", accept)
		if got != want {
			t.Errorf("Accept %q: %t", accept, got)
		}
	}
}
