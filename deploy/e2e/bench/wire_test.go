package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

func TestEachPostIsAWholeRequestWithANewReference(t *testing.T) {
	sale := uuid.Must(uuid.NewV7())
	var mu sync.Mutex
	seen := map[string]bool{}
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			ExternalRef string `json:"external_ref"`
			CampaignID  string `json:"campaign_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if r.Method != "POST" || r.URL.Path != "/api/v1/sales" || r.Header.Get("Authorization") != "Bearer k" || body.CampaignID != "c" {
			t.Errorf("got %s %s with %v and %+v", r.Method, r.URL, r.Header, body)
		}
		mu.Lock()
		seen[body.ExternalRef] = true
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(201)
		w.Write([]byte(saleIDMember + sale.String() + `"}`))
	})
	for number := range 2 {
		w, err := dialShop(&shop{address: address, key: "k", CampaignID: "c", PlanID: "p"}, number)
		if err != nil {
			t.Fatal(err)
		}
		defer w.conn.Close()
		for range 15 { // past the first carry
			got, err := w.post()
			if err != nil {
				t.Fatal(err)
			}
			if got != sale {
				t.Fatalf("read the sale %s, want %s", got, sale)
			}
		}
	}
	if len(seen) != 30 {
		t.Errorf("30 posts had %d references", len(seen))
	}
}

func TestAnyAnswerBut201IsAnErrorThatShowsIt(t *testing.T) {
	address := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		w.Write([]byte("too busy"))
	})
	w, err := dialShop(&shop{address: address}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.conn.Close()
	if _, err := w.post(); err == nil || !strings.Contains(err.Error(), "503: too busy") {
		t.Errorf("the error is %v", err)
	}
}

func TestAnAnswerIsReadHoweverItIsCut(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 10_000)
	answer := append([]byte("HTTP/1.1 201 Created\r\nContent-Length: "+strconv.Itoa(len(long))+"\r\n\r\n"), long...)
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		for _, piece := range [][]byte{answer[:5], answer[5:30], answer[30:50], answer[50:9000], answer[9000:]} {
			there.Write(piece)
		}
	}()
	w := &wire{conn: here, buffer: make([]byte, 16)}
	status, body, err := w.read()
	if err != nil || status != 201 || !bytes.Equal(body, long) {
		t.Errorf("read %d with %d bytes, %v", status, len(body), err)
	}
}

// serveHTTP runs a handler and returns its host and port.
func serveHTTP(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}
