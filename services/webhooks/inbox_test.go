package webhooks

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
)

// joined makes the event that a partner joined.
func joined(t *testing.T, tenant uuid.UUID, at time.Time) event.Sealed {
	t.Helper()
	id := uuid.New()
	return seal(t, tenant, id, at, event.PartnerCreated{PartnerID: id, Name: "João", ReferralCode: "JOAO", Status: "active", CreatedAt: at})
}

func joinedMany(t *testing.T, tenant uuid.UUID, n int) []event.Sealed {
	t.Helper()
	events := make([]event.Sealed, n)
	for i := range events {
		events[i] = joined(t, tenant, time.Now())
	}
	return events
}

func sold(t *testing.T, tenant uuid.UUID, at time.Time) event.Sealed {
	t.Helper()
	id := uuid.New()
	return seal(t, tenant, id, at, event.SaleRecorded{SaleID: id, ExternalRef: "r", Amount: 100_00, SoldAt: at})
}

func seal[T event.Payload](t *testing.T, tenant, cause uuid.UUID, at time.Time, data T) event.Sealed {
	t.Helper()
	e, err := event.Seal(tenant, cause.String(), at, data, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// inbox is a tenant's receiver: it counts what it gets, and then does what it is told.
type inbox struct {
	*httptest.Server

	mu       sync.Mutex
	received []post
}

type post struct {
	method, path, host string
	header             http.Header
	body               []byte
	at                 time.Time
}

func newInbox(t *testing.T, then http.HandlerFunc) *inbox {
	t.Helper()
	in := &inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender died in the middle
		}
		in.mu.Lock()
		in.received = append(in.received, post{r.Method, r.URL.RequestURI(), r.Host, r.Header.Clone(), body, time.Now()})
		in.mu.Unlock()
		if then != nil {
			then(w, r)
		}
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) posts() []post {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.received)
}

func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.received)
}

// timesPosted counts the POSTs of each event by its id.
func (in *inbox) timesPosted(t *testing.T) map[string]int {
	t.Helper()
	times := map[string]int{}
	for _, p := range in.posts() {
		e, err := event.Open(bytes.Clone(p.body))
		if err != nil {
			t.Fatal(err)
		}
		times[e.ID.String()]++
	}
	return times
}

// mustHaveOnce fails the test unless the inbox got each of these events exactly once,
// and no other.
func (in *inbox) mustHaveOnce(t *testing.T, events ...event.Sealed) {
	t.Helper()
	times := in.timesPosted(t)
	for _, e := range events {
		if n := times[e.ID.String()]; n != 1 {
			t.Errorf("event %s was posted %d times", e.ID, n)
		}
		delete(times, e.ID.String())
	}
	for id, n := range times {
		t.Errorf("event %s was posted %d times, and should not have been", id, n)
	}
}
