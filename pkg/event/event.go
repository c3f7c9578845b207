// Package event is what ties the services: the envelope, the name of every event,
// and the shape of its data.
//
// The bytes of an envelope are made once, by whoever owns the fact, and never
// change: what NATS carries is what a webhook delivers. Events only gain members.
package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// ID names an event for ever. It is derived from what caused the event, so that
// telling the same fact again makes the same id.
type ID [16]byte

// IDOf derives the id of the event called name that cause brought about. The cause
// is the id of the row that the event tells of, or what makes it unique.
func IDOf(name, cause string) ID {
	sum := sha256.Sum256([]byte(name + "\x00" + cause))
	return ID(sum[:16])
}

const idPrefix = "evt_"

// String is the wire form: evt_ and 32 lower-case hexadecimal digits.
func (id ID) String() string { return idPrefix + hex.EncodeToString(id[:]) }

// MarshalText writes the wire form.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the wire form, in either letter case. On an error the id stays
// as it was.
func (id *ID) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), idPrefix)
	bytes, err := hex.DecodeString(digits)
	if !ok || err != nil || len(bytes) != len(id) {
		return fmt.Errorf("event id %q is not %s and %d hexadecimal digits", text, idPrefix, 2*len(id))
	}
	*id = ID(bytes)
	return nil
}

// Payload is the data of one kind of event; it knows its own name.
type Payload interface{ EventName() string }

// Event is one fact of one tenant, as its handler receives it.
type Event[T any] struct {
	Name      string    `json:"event"`
	ID        ID        `json:"event_id"`
	CreatedAt time.Time `json:"created_at"` // UTC, cut to microseconds
	TenantID  uuid.UUID `json:"tenant_id"`
	Data      T         `json:"data"`

	// Traceparent is the W3C trace context that came beside the event, or "".
	Traceparent string `json:"-"`
}

// Sealed is an event whose bytes are fixed: ready to be stored and sent.
type Sealed struct {
	Name        string
	ID          ID
	CreatedAt   time.Time
	TenantID    uuid.UUID
	Body        []byte // the whole envelope
	Traceparent string
}

// Seal makes the event that cause brought about and fixes its bytes.
func Seal[T Payload](tenant uuid.UUID, cause string, at time.Time, data T, traceparent string) (Sealed, error) {
	name := data.EventName()
	e := Event[T]{Name: name, ID: IDOf(name, cause), CreatedAt: Instant(at), TenantID: tenant, Data: data}
	body, err := json.Marshal(e)
	if err != nil {
		return Sealed{}, fmt.Errorf("write event %s: %w", name, err)
	}
	return Sealed{Name: name, ID: e.ID, CreatedAt: e.CreatedAt, TenantID: tenant, Body: body, Traceparent: traceparent}, nil
}

// Envelope reads the envelope of body and leaves its data as it came. It fails where a
// member of the envelope is missing or of another type.
func Envelope(body []byte) (Event[jsontext.Value], error) {
	var e Event[jsontext.Value]
	if err := json.Unmarshal(body, &e); err != nil {
		return Event[jsontext.Value]{}, fmt.Errorf("read envelope: %w", err)
	}
	if e.Name == "" || e.ID == (ID{}) || e.TenantID == uuid.Nil || e.CreatedAt.IsZero() || e.Data.Kind() != '{' {
		return Event[jsontext.Value]{}, fmt.Errorf("read envelope: a member is missing")
	}
	return e, nil
}

// Open reads an event whose bytes are fixed already. It fails as [Envelope] does.
func Open(body []byte) (Sealed, error) {
	e, err := Envelope(body)
	if err != nil {
		return Sealed{}, err
	}
	return Sealed{Name: e.Name, ID: e.ID, CreatedAt: e.CreatedAt, TenantID: e.TenantID, Body: body}, nil
}

// Read reads the whole event with its typed data. Members of data that this version
// does not know are ignored; an event of another name is an error.
func Read[T Payload](s Sealed) (Event[T], error) {
	var e Event[T]
	if err := json.Unmarshal(s.Body, &e); err != nil {
		return e, fmt.Errorf("read event %s: %w", s.Name, err)
	}
	if want := e.Data.EventName(); e.Name != want {
		return e, fmt.Errorf("read event %s: it is %q", want, e.Name)
	}
	e.Traceparent = s.Traceparent
	return e, nil
}

// Instant cuts t to what the wire and PostgreSQL hold: UTC, microseconds.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
