package openapi

import "github.com/go-json-experiment/json"

// Optional is a member of a PATCH that may be left out, be null, or have a value. The
// zero Optional was left out.
type Optional[T any] struct {
	Sent  bool
	Value *T // nil: null
}

// UnmarshalJSON is called only for a member that is there.
func (o *Optional[T]) UnmarshalJSON(raw []byte) error {
	o.Sent = true
	return json.Unmarshal(raw, &o.Value)
}

// Over is what holds after the change: the member's value where it was sent, else
// what was there before.
func (o Optional[T]) Over(before *T) *T {
	if o.Sent {
		return o.Value
	}
	return before
}
