package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestAFloodTellsWhatWasAcceptedAndNamesWhatWasRefused(t *testing.T) {
	var mu sync.Mutex
	var calls, accepted int
	var refused []string
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			ExternalRef string `json:"external_ref"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		calls++
		switch {
		case calls > 8 && calls%3 == 0:
			refused = append(refused, body.ExternalRef)
			w.WriteHeader(429)
		case calls > 8 && calls%3 == 1:
			refused = append(refused, body.ExternalRef)
			w.WriteHeader(503)
		default:
			accepted++
			w.WriteHeader(201)
			w.Write([]byte(saleIDMember + uuid.NewString() + `"}`))
		}
	})
	c, err := gather(&shop{address: address}, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	f, err := c.flood(t.Context(), 1000, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(refused)
	slices.Sort(f.refused)
	if c.gathered() != 8 || len(f.acceptedIn) != accepted-8 || len(f.refusedIn) != len(refused) || len(refused) == 0 || !slices.Equal(f.refused, refused) {
		t.Errorf("%d accepted, %d refused, named %q; the server accepted %d and refused %q", len(f.acceptedIn), len(f.refusedIn), f.refused, accepted-8, refused)
	}
}

func TestAFloodEndsInTimeWhereTheServerIsSlow(t *testing.T) {
	const d = 50 * time.Millisecond
	var calls atomic.Int64
	address := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 2 {
			time.Sleep(d / 2) // a server that cannot keep up
		}
		w.WriteHeader(201)
		w.Write([]byte(saleIDMember + uuid.NewString() + `"}`))
	})
	c, err := gather(&shop{address: address}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	f, err := c.flood(t.Context(), 10_000, d)
	if err != nil {
		t.Fatal(err)
	}
	if sent := len(f.acceptedIn); sent < 2 || sent > 6 || calls.Load() != int64(sent)+2 { // 500 were due
		t.Errorf("%d of 500 were sent, and %d arrived", sent, calls.Load()-2)
	}
}

func TestAnAnswerThatIsNeitherFailsTheFlood(t *testing.T) {
	var calls atomic.Int64
	address := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 1 {
			w.WriteHeader(500)
			return
		}
		w.WriteHeader(201)
		w.Write([]byte(saleIDMember + uuid.NewString() + `"}`))
	})
	c, err := gather(&shop{address: address}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, err := c.flood(t.Context(), 1000, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("the error is %v", err)
	}
}
