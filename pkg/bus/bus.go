// Package bus is all that knows JetStream: the streams, publishing, and consumers
// that hand typed events to a handler inside a database transaction.
//
// JetStream is transport here, never the record. Whatever it loses is published
// again from an outbox, and whatever it delivers twice is recognised by a receipt.
package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// Bus is one process's connection to NATS. It is usable at once and reconnects by
// itself for ever; what needs the server fails or waits while it is away.
type Bus struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	log      *zap.Logger
	replicas int
}

// Config says where NATS is.
type Config struct {
	URL      string
	Name     string // shown by the server's monitoring; what is sent to this process alone goes to _INBOX.Name.>
	Replicas int    // of every stream: 1 on one server, 3 or 5 in a cluster
}

// Connect returns at once, whether the server can be reached or not. The error is
// about the configuration only.
func Connect(config Config, log *zap.Logger) (*Bus, error) {
	there := connected.WithLabelValues(config.Name)
	there.Set(0)
	conn, err := nats.Connect(config.URL,
		nats.Name(config.Name), nats.CustomInboxPrefix(inboxOf(config.Name)),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond),
		nats.IgnoreAuthErrorAbort(), // a password that is refused may be accepted again, once the server is mended
		nats.ReconnectBufSize(-1),   // nothing is published into the void: the outbox is the buffer
		nats.PingInterval(10*time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(*nats.Conn) { there.Set(1) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			there.Set(0)
			if err != nil { // nil: we have closed it ourselves
				log.Warn("nats is away", zap.Error(err))
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Error("nats refuses something", zap.Error(err)) // as what the user has no permission for
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			there.Set(1)
			log.Info("nats is back")
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(8192), jetstream.WithPublishAsyncTimeout(5*time.Second))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("prepare JetStream: %w", err)
	}
	return &Bus{conn: conn, js: js, log: log, replicas: max(config.Replicas, 1)}, nil
}

// inboxOf is the prefix of the subjects at which a client of that name gets answers. One
// for each service lets the server keep them from reading each other's.
func inboxOf(name string) string {
	token := func(r rune) rune {
		if r <= ' ' || r == '.' || r == '*' || r == '>' || r == 0x7f {
			return '_'
		}
		return r
	}
	if name == "" {
		return "_INBOX"
	}
	return "_INBOX." + strings.Map(token, name)
}

// Connected tells whether the server can be reached now.
func (b *Bus) Connected() bool { return b.conn.IsConnected() }

// ServerID names the very process that this connection speaks to; it changes when
// the server restarts. Empty while not connected.
func (b *Bus) ServerID() string {
	if !b.conn.IsConnected() {
		return ""
	}
	return b.conn.ConnectedServerId()
}

// JetStream is the raw interface, for what only one package needs.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// Replicas is how many copies a stream or bucket keeps.
func (b *Bus) Replicas() int { return b.replicas }

// Close ends the connection. Consumers and relays must have stopped before.
func (b *Bus) Close() { b.conn.Close() }

// errAway is what publishing and stream calls return while there is no server.
var errAway = errors.New("NATS is not connected")

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
