package web

import (
	"context"
	"net/http"
	"time"

	"partilha.dev/pkg/fault"
)

// A call that listens waits for what is going to happen: a long poll, or a stream of
// events. It may last for as long as the caller likes, so it is counted apart from calls
// that are answered at once, its time is bounded by no deadline but that of each write,
// and whether its key still admits it is asked again while it lasts.

const (
	recheckEvery = time.Second      // is the key still good?
	settleWithin = 15 * time.Second // for the answer to be taken, once there is one
)

// listening is a call while it listens.
type listening struct {
	over    context.Context // its cause is why the call is to end
	end     context.CancelCauseFunc
	control *http.ResponseController
}

// Over is closed when a call of a route that listens is to end: the caller has left, the
// service is about to stop, or the key is no longer good. The handler then answers what
// it has; where it was the key, the caller is told that instead. The context of the call
// lives on, except where the caller has left. Over is nil on any other route.
func (c *Call) Over() <-chan struct{} {
	if c.listening == nil {
		return nil
	}
	return c.listening.over.Done()
}

// listen lifts the server's deadlines from the call and watches over it until stop.
func (c *Call) listen(w http.ResponseWriter) (stop func()) {
	l := &listening{control: http.NewResponseController(w)}
	l.over, l.end = context.WithCancelCause(c.Context())
	c.listening = l
	_ = l.control.SetReadDeadline(time.Time{}) // a deadline would end the call's context; nothing else is sent to us
	_ = l.control.SetWriteDeadline(time.Time{})
	forget := context.AfterFunc(draining(c.Context()), func() { l.end(context.Canceled) })
	go c.recheck()
	return func() {
		forget()
		l.end(context.Canceled)
		_ = l.control.SetReadDeadline(time.Now().Add(readWithin)) // for a body that nobody has asked for
	}
}

// recheck ends the call once its key no longer admits it. That the keys cannot be looked
// at for a while ends nothing.
func (c *Call) recheck() {
	tick := time.NewTicker(recheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.Over():
			return
		case <-tick.C:
		}
		_, err := c.endpoint.vouch(c.listening.over, c.Credential)
		if kind := fault.KindOf(err); kind == fault.Unauthorized || kind == fault.Forbidden {
			c.listening.end(err)
			return
		}
	}
}

// settle bounds the time for the answer of a call that has listened. Its error is the
// refusal that the key meets by now.
func (c *Call) settle() error {
	if c.listening == nil {
		return nil
	}
	_ = c.listening.control.SetWriteDeadline(time.Now().Add(settleWithin))
	if cause := context.Cause(c.listening.over); fault.Of(cause) != nil {
		return cause
	}
	return nil
}

type drainingKey struct{}

// draining is a context that ends when the server which took the call is about to stop.
func draining(ctx context.Context) context.Context {
	if serving, ok := ctx.Value(drainingKey{}).(context.Context); ok {
		return serving
	}
	return context.Background()
}
