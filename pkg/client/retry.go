package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	// The pause before the second attempt is at most firstPause; it doubles up to
	// longestPause.
	firstPause   = 250 * time.Millisecond
	longestPause = 8 * time.Second

	// patience is the longest Retry-After that is waited for. The caller of a call that is
	// asked to wait longer has better things to do.
	patience = time.Minute
)

// persist attempts the call until it is granted, refused for good, or not worth another
// attempt, and returns what the last attempt did.
func (c *Client) persist(ctx context.Context, do call, body []byte) (reply, error) {
	for attempt := 1; ; attempt++ {
		got, err := c.attempt(ctx, do, body)
		if err == nil || attempt == c.attempts || ctx.Err() != nil || !do.again(err) {
			return got, err
		}
		wait, ok := pause(attempt, err)
		if deadline, bounded := ctx.Deadline(); !ok || bounded && time.Until(deadline) <= wait {
			return got, err
		}
		if interrupted := sleep(ctx, wait); interrupted != nil {
			return got, fmt.Errorf("%w while waiting to repeat the call, which failed: %w", interrupted, err)
		}
	}
}

// again tells whether a call that failed so may be sent again.
func (do call) again(err error) bool {
	if errors.Is(err, errTooLong) {
		return false
	}
	if refused := new(Error); errors.As(err, &refused) {
		return do.repeatable && refused.Temporary()
	}
	return do.repeatable || unsent(err)
}

// unsent tells whether there was not even a connection. Everything later, a failed TLS
// handshake too, counts as sent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// pause is how long to wait after so many attempts, of which the last failed so: what
// Retry-After asks for, and a moment more, of which half is random, so that callers who
// failed together do not come again together. It reports false if that is too long.
func pause(attempts int, err error) (time.Duration, bool) {
	most := longestPause
	if doublings := attempts - 1; doublings < 6 {
		most = min(most, firstPause<<doublings)
	}
	wait := most/2 + rand.N(most/2)
	if refused := new(Error); errors.As(err, &refused) {
		return wait + refused.RetryAfter, refused.RetryAfter <= patience
	}
	return wait, true
}

// sleep waits, unless the context ends first; then it returns the context's error.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryAfter reads the header of that name, which counts seconds or names a date; 0 if
// it does neither.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(date))
	}
	return 0
}
