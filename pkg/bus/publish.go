package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/event"
)

const traceHeader = "traceparent"

// Outgoing is an event on its way to the stream, under the id by which JetStream
// tells duplicates apart. A repair uses an id of its own, since the stream would
// drop the original one even after it has lost the message.
type Outgoing struct {
	event.Sealed
	MessageID string
}

// Publish sends events and waits until the server has stored them. It returns
// those that it acknowledged; an error tells why others were not, and they may
// still have arrived.
func (b *Bus) Publish(ctx context.Context, events []Outgoing) (stored []Outgoing, err error) {
	if !b.Connected() {
		return nil, errAway
	}
	futures := make([]jetstream.PubAckFuture, 0, len(events))
	for _, e := range events {
		message := &nats.Msg{Subject: e.Name, Data: e.Body, Header: nats.Header{nats.MsgIdHdr: {e.MessageID}}}
		if e.Traceparent != "" {
			message.Header[traceHeader] = []string{e.Traceparent}
		}
		future, failure := b.js.PublishMsgAsync(message)
		if failure != nil {
			err = fmt.Errorf("publish %s: %w", e.Name, failure)
			break
		}
		futures = append(futures, future)
	}
	timeout := time.NewTimer(6 * time.Second)
	defer timeout.Stop()
	for i, future := range futures {
		select {
		case <-future.Ok():
			stored = append(stored, events[i])
		case failure := <-future.Err():
			err = fmt.Errorf("publish %s: %w", events[i].Name, failure)
		case <-timeout.C:
			return stored, fmt.Errorf("publish %s: no acknowledgement in time", events[i].Name)
		case <-ctx.Done():
			return stored, ctx.Err()
		}
	}
	return stored, err
}
