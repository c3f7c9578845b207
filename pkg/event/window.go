package event

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// WindowPrefix is what the names of windows begin with; the name of their stream, in
// lower case, follows.
const WindowPrefix = "window."

// Window is what the owner of a stream has made known in one stretch of time, so that
// whoever listens can tell whether it has all of it. It is between the services: it has
// no tenant and no envelope, and nobody takes it for an event.
type Window struct {
	Start     time.Time        `json:"start"`      // the created_at of its events are not before
	End       time.Time        `json:"end"`        // and before this
	CountedAt time.Time        `json:"counted_at"` // of two counts of one window the later one holds
	Events    map[string]Tally `json:"events"`     // by name; what did not occur is left out
}

// Tally is what the events of one name come to.
type Tally struct {
	Count       int64 `json:"count"`
	Centavos    int64 `json:"amount_centavos"`     // the sum of amount_brl, where the event has one
	Commissions int64 `json:"commission_centavos"` // the sum of commission_amount_brl, likewise
}

// Of returns what the events of all these names come to.
func (w Window) Of(names []string) (sum Tally) {
	for _, name := range names {
		t := w.Events[name]
		sum.Count += t.Count
		sum.Centavos += t.Centavos
		sum.Commissions += t.Commissions
	}
	return sum
}

// Seal fixes the window's bytes under the name that its stream has for windows. Another
// count of the same window has another id.
func (w Window) Seal(name string) (Sealed, error) {
	body, err := json.Marshal(w, json.Deterministic(true))
	if err != nil {
		return Sealed{}, fmt.Errorf("write window: %w", err)
	}
	at := Instant(w.CountedAt)
	cause := w.Start.UTC().Format(time.RFC3339) + " " + at.Format(time.RFC3339Nano)
	return Sealed{Name: name, ID: IDOf(name, cause), CreatedAt: at, TenantID: uuid.Nil, Body: body}, nil
}

// OpenWindow reads what Seal wrote.
func OpenWindow(body []byte) (Window, error) {
	var w Window
	if err := json.Unmarshal(body, &w); err != nil {
		return Window{}, fmt.Errorf("read window: %w", err)
	}
	if !w.Start.Before(w.End) || w.CountedAt.IsZero() {
		return Window{}, fmt.Errorf("read window: a member is missing")
	}
	return w, nil
}
