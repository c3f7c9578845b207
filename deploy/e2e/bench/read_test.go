package main

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestEachQuestionNamesAPartnerOfItsOwn(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]bool{}
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		id, ok := strings.CutPrefix(r.URL.Path, "/balances/")
		if _, err := uuid.Parse(id); !ok || err != nil || r.Method != "GET" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("got %s %s with %v", r.Method, r.URL, r.Header)
		}
		mu.Lock()
		asked[id] = true
		mu.Unlock()
		w.Write([]byte("right"))
	})
	q := question{path: "/balances/%s", partner: loadedPartner(1_000_000), answered: func(body []byte) bool { return string(body) == "right" }}
	r, err := (&shop{address: address, key: "k"}).ask(t.Context(), q, 1000, 50*time.Millisecond, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.took) != 50 || r.givenUp != 0 || len(asked) < 40 || r.took.quantile(0) <= 0 {
		t.Errorf("%d answers, the fastest after %v ms, %d given up, %d partners", len(r.took), r.took.quantile(0), r.givenUp, len(asked))
	}
}

func TestAWrongAnswerFailsTheReading(t *testing.T) {
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/absent" {
			w.WriteHeader(404)
		}
		w.Write([]byte("wrong"))
	})
	right := func(body []byte) bool { return bytes.Equal(body, []byte("right")) }
	for _, q := range []question{{path: "/", answered: right}, {path: "/absent", answered: func([]byte) bool { return true }}} {
		if _, err := (&shop{address: address}).ask(t.Context(), q, 1000, 5*time.Millisecond, time.Minute); err == nil || !strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: the error is %v", q.path, err)
		}
	}
}

func TestCallsThatComeTooLateAreGivenUpAndCounted(t *testing.T) {
	var calls atomic.Int64
	address := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		time.Sleep(50 * time.Millisecond) // a server that cannot keep up
		w.Write([]byte("late"))
	})
	q := question{path: "/", answered: func([]byte) bool { return true }}
	const patience = 10 * time.Millisecond
	r, err := (&shop{address: address}).ask(t.Context(), q, 1000, 100*time.Millisecond, patience)
	if err != nil {
		t.Fatal(err)
	}
	if r.givenUp == 0 || len(r.took) != 100 || int64(r.givenUp) != 100-calls.Load() {
		t.Errorf("%d of %d were given up, and %d arrived", r.givenUp, len(r.took), calls.Load())
	}
	if least := r.took.quantile(0); least < milliseconds(patience) {
		t.Errorf("what was given up counts only %v ms", least)
	}
}
