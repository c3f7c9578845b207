package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
)

// Stream is the log of one service's facts. Only its owner creates it and
// publishes to it.
type Stream struct {
	Name     string
	Subjects []string
}

// The streams, each owned by the service of the same name.
var (
	Sales       = Stream{Name: "SALES", Subjects: []string{"sale.*", "conversion.*", "partner.*", "window.sales"}}
	Commissions = Stream{Name: "COMMISSIONS", Subjects: []string{"commission.*", "withdrawal.*", "window.commissions"}}
	Goals       = Stream{Name: "GOALS", Subjects: []string{"goal.*", "window.goals"}}
)

// WindowName is the subject on which the stream's owner tells what it counted in each
// window, as an event.Window.
func (s Stream) WindowName() string { return event.WindowPrefix + strings.ToLower(s.Name) }

// Retention is how long a stream keeps a message.
const Retention = 7 * 24 * time.Hour

// duplicateWindow is how long JetStream itself recognises a message id. It only
// saves work, and costs the server memory for every message: no promise rests on it.
const duplicateWindow = 30 * time.Second

// streamOf returns the stream that carries the event called name.
func streamOf(name string) Stream {
	family, _, _ := strings.Cut(name, ".")
	for _, stream := range []Stream{Sales, Commissions, Goals} {
		for _, subject := range stream.Subjects {
			if subject == family+".*" {
				return stream
			}
		}
	}
	return Stream{}
}

// EnsureStream creates the stream or brings its settings up to date, trying again
// until that succeeds or ctx ends.
func (b *Bus) EnsureStream(ctx context.Context, stream Stream) error {
	for ctx.Err() == nil {
		_, err := b.createStream(ctx, stream)
		if err == nil {
			return nil
		}
		if b.Connected() {
			b.log.Warn("cannot create stream", zap.String("stream", stream.Name), zap.Error(err))
		}
		pause(ctx, 250*time.Millisecond)
	}
	return ctx.Err()
}

func (b *Bus) createStream(ctx context.Context, stream Stream) (jetstream.Stream, error) {
	if !b.Connected() {
		return nil, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: stream.Name, Subjects: stream.Subjects,
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy,
		MaxAge: Retention, Discard: jetstream.DiscardNew,
		Duplicates: duplicateWindow, Replicas: b.replicas,
	})
	if err != nil {
		return nil, fmt.Errorf("create stream %s: %w", stream.Name, err)
	}
	return s, nil
}

// Condition is what a stream's owner compares from time to time to learn whether
// the server lost something.
type Condition struct {
	ServerID string    // the server process
	Created  time.Time // when the stream was created
	FirstSeq uint64    // of the oldest message, or of the next one while the stream is empty
	LastSeq  uint64    // of the newest message
	LastTime time.Time // when it was stored; zero while the stream is empty
	Holes    int       // messages between the two that are gone
}

// Inspect returns the stream's condition, after creating it where it is missing.
func (b *Bus) Inspect(ctx context.Context, stream Stream) (Condition, error) {
	s, err := b.findStream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = b.createStream(ctx, stream)
	}
	if err != nil {
		return Condition{}, err
	}
	info := s.CachedInfo()
	return Condition{
		ServerID: b.ServerID(), Created: info.Created.UTC().Truncate(time.Microsecond),
		FirstSeq: max(info.State.FirstSeq, 1), LastSeq: info.State.LastSeq, LastTime: info.State.LastTime,
		Holes: info.State.NumDeleted,
	}, nil
}

func (b *Bus) findStream(ctx context.Context, stream Stream) (jetstream.Stream, error) {
	if !b.Connected() {
		return nil, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := b.js.Stream(ctx, stream.Name)
	if err != nil {
		return nil, fmt.Errorf("find stream %s: %w", stream.Name, err)
	}
	return s, nil
}
