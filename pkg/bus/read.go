package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/event"
)

const (
	readerName   = "reconciler"    // of the consumer by which an owner reads its own stream
	readAtOnce   = 2000            // messages
	readerEnds   = 5 * time.Minute // without a question the server forgets it
	readPatience = 5 * time.Second
)

// Reader tells which events a stream holds. It reads their headers alone, in their
// order. One reader of a stream can be open at a time: another one ends it.
type Reader struct {
	bus      *Bus
	stream   Stream
	consumer jetstream.Consumer
	read     uint64 // messages
	pending  uint64 // messages that the server has said to be there
}

// Read opens a reader of what the stream has stored since. The stream must be the
// caller's own.
func (b *Bus) Read(ctx context.Context, stream Stream, since time.Time) (*Reader, error) {
	if !b.Connected() {
		return nil, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	err := b.js.DeleteConsumer(ctx, stream.Name, readerName)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("read stream %s: %w", stream.Name, err)
	}
	consumer, err := b.js.CreateConsumer(ctx, stream.Name, jetstream.ConsumerConfig{
		Name: readerName, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since,
		AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MemoryStorage: true, Replicas: 1, InactiveThreshold: readerEnds,
	})
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream.Name, err)
	}
	return &Reader{bus: b, stream: stream, consumer: consumer}, nil
}

// Stored is an event that a stream holds.
type Stored struct {
	ID event.ID
	At time.Time // when the stream got it
}

// errSkipped means that messages were sent to the reader and did not arrive.
var errSkipped = errors.New("messages were lost on their way")

// Next returns the next events, or none at the end of the stream, where more may come
// to be later. After an error the reader is of no use any more.
func (r *Reader) Next(ctx context.Context) ([]Stored, error) {
	found, err := r.next(ctx)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", r.stream.Name, err)
	}
	return found, nil
}

func (r *Reader) next(ctx context.Context) ([]Stored, error) {
	if r.pending == 0 {
		ctx, cancel := context.WithTimeout(ctx, readPatience)
		defer cancel()
		info, err := r.consumer.Info(ctx)
		if err != nil || info.NumPending == 0 {
			return nil, err
		}
		r.pending = info.NumPending
	}
	batch, err := r.consumer.Fetch(int(min(r.pending, readAtOnce)), jetstream.FetchMaxWait(readPatience))
	if err != nil {
		return nil, err
	}
	var found []Stored
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		if r.read++; meta.Sequence.Consumer != r.read {
			return nil, errSkipped
		}
		r.pending = meta.NumPending
		name, _, _ := strings.Cut(m.Headers().Get(nats.MsgIdHdr), ":") // a repair's number follows
		var id event.ID
		_ = id.UnmarshalText([]byte(name)) // a message under another kind of id is of no event
		found = append(found, Stored{ID: id, At: meta.Timestamp})
	}
	if err := cmp.Or(batch.Error(), ctx.Err()); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errSkipped
	}
	return found, nil
}

// Close ends the reader. Where that fails the server forgets it by itself.
func (r *Reader) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readPatience)
	defer cancel()
	_ = r.bus.js.DeleteConsumer(ctx, r.stream.Name, readerName)
}
