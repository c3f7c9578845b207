package main

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestAnOpenLoopCountsTheWaitForASlowAnswer(t *testing.T) {
	const pause = 50 * time.Millisecond
	first := sync.OnceFunc(func() { time.Sleep(pause) }) // a server that hangs once
	address := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		first()
		w.WriteHeader(201)
		w.Write([]byte(saleIDMember + uuid.NewString() + `"}`))
	})
	l, err := connect(&shop{address: address}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	promises, err := l.open(context.Background(), 1000, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(promises) != 20 || l.total() != 20 || len(l.recorded[0]) != 20 {
		t.Fatalf("%d promises, %d answers, %d recorded, want 20", len(promises), l.total(), len(l.recorded[0]))
	}
	for i, p := range promises { // the last was due 19 ms after the first
		if waited := p.answered.Sub(p.due); waited < pause-20*time.Millisecond {
			t.Errorf("sale %d counts only %s", i, waited)
		}
	}
}

func TestOneFailedSaleFailsTheLoad(t *testing.T) {
	address := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	l, err := connect(&shop{address: address}, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if _, err := l.closed(context.Background(), time.Minute); err == nil {
		t.Error("a closed loop took a 500 for a sale")
	}
	if _, err := l.open(context.Background(), 1000, 10*time.Millisecond); err == nil {
		t.Error("an open loop took a 500 for a sale")
	}
}
