package webhooks

import (
	_ "embed" // of the samples
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partilha.dev/pkg/event"
)

// All ids in them begin with zeros, as no real one does, so that a receiver's books can
// tell what never happened.
//
//go:embed samples.json
var samplesFile []byte

// madeUp is an event's data that is not read from anything that happened.
type madeUp struct {
	name string
	data jsontext.Value
}

// EventName is whatever event it pretends to be.
func (m madeUp) EventName() string { return m.name }

// MarshalJSON writes the data as it came.
func (m madeUp) MarshalJSON() ([]byte, error) { return m.data, nil }

// sample makes an event of that name, as of now, with an id that no other event has. It
// is recorded nowhere. Without data it tells that of the sample.
func (s *Service) sample(tenant uuid.UUID, name string, data jsontext.Value) (event.Sealed, error) {
	if data == nil {
		var samples map[string]jsontext.Value
		if err := json.Unmarshal(samplesFile, &samples); err != nil {
			return event.Sealed{}, fmt.Errorf("read samples: %w", err)
		}
		data = samples[name]
	}
	made, err := event.Seal(tenant, "sample "+uuid.NewString(), s.deps.Now(), madeUp{name, data}, "")
	if err != nil {
		return event.Sealed{}, fmt.Errorf("make sample of %s: %w", name, err)
	}
	return made, nil
}
