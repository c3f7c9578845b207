package client

import "github.com/go-json-experiment/json"

// Nullable is a member of an update that can be left as it is, get a value, or lose the
// one that it has. The zero Nullable leaves it as it is.
type Nullable[T any] struct {
	sent  bool
	value *T // nil: null
}

// Value sets the member.
func Value[T any](value T) Nullable[T] { return Nullable[T]{sent: true, value: &value} }

// Null takes the member's value away.
func Null[T any]() Nullable[T] { return Nullable[T]{sent: true} }

// IsZero tells whether the member is left as it is, and therefore not sent.
func (n Nullable[T]) IsZero() bool { return !n.sent }

// MarshalJSON writes the value or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) { return json.Marshal(n.value) }
