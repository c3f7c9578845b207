package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/client"
)

func TestRetryAfterIsWaitedFor(t *testing.T) {
	for name, row := range map[string]struct {
		value func() string
		want  time.Duration
	}{
		"seconds":              {func() string { return "7" }, 7 * time.Second},
		"a minute":             {func() string { return "60" }, time.Minute},
		"a date":               {func() string { return time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat) }, 9 * time.Second},
		"a date that has been": {func() string { return time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat) }, 0},
		"none at all":          {func() string { return "0" }, 0},
		"nonsense":             {func() string { return "soon" }, 0},
		"a negative":           {func() string { return "-5" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, _ *http.Request, nth int) {
				if nth == 1 {
					w.Header().Set("Retry-After", row.value())
					say(w, 429, refusal("rate_limited", "wait"))
					return
				}
				say(w, 201, receipt)
			}
			inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
				start := time.Now()
				if _, err := c.RecordSale(t.Context(), report("order-1")); err != nil {
					t.Fatal(err)
				}
				// A date has whole seconds, and the bubble's clock starts on one.
				if took := time.Since(start); took < row.want || took > row.want+250*time.Millisecond {
					t.Errorf("it took %s, want %s and at most a quarter of a second", took, row.want)
				}
			})
		})
	}
}

func TestAWaitThatIsTooLongIsNotBegun(t *testing.T) {
	for name, row := range map[string]struct {
		retryAfter string
		within     time.Duration // 0: the caller has all the time in the world
	}{
		"beyond the deadline":                {"30", 10 * time.Second},
		"beyond the deadline by the backoff": {"10", 10 * time.Second},
		"beyond all patience":                {"61", 0},
		"beyond all measure":                 {"2147483647", 0},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
				w.Header().Set("Retry-After", row.retryAfter)
				say(w, 503, refusal("unavailable", "later"))
			}
			inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
				ctx := t.Context()
				if row.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.within)
					defer cancel()
				}
				start := time.Now()
				_, err := c.RecordSale(ctx, report("order-1"))
				var refused *client.Error
				if !errors.As(err, &refused) || refused.RetryAfter.String() == "0s" {
					t.Errorf("the error is %v, which does not say when to come again", err)
				}
				if took, n := time.Since(start), len(s.requests()); took > 0 || n != 1 {
					t.Errorf("it took %s and %d attempts", took, n)
				}
			})
		})
	}
}

func TestACancelledContextEndsTheWait(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Retry-After", "20")
		say(w, 503, refusal("unavailable", "later"))
	}
	inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		_, err := c.RecordSale(ctx, report("order-1"))
		var refused *client.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &refused) {
			t.Errorf("the error is %v, want that of the context and why there was a wait", err)
		}
		if took, n := time.Since(start), len(s.requests()); took != 3*time.Second || n != 1 {
			t.Errorf("it took %s and %d attempts", took, n)
		}
	})
}

func TestACancelledContextEndsTheAttempt(t *testing.T) {
	answer := func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }
	inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.RecordSale(ctx, report("order-1"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if took, n := time.Since(start), len(s.requests()); took != 3*time.Second || n != 1 {
			t.Errorf("it took %s and %d attempts", took, n)
		}
	})
}

func TestAnAttemptHasATimeOfItsOwn(t *testing.T) {
	answer := func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }
	for given, want := range map[time.Duration]time.Duration{0: 15 * time.Second, time.Second: time.Second} {
		inBubble(t, client.Options{Attempts: 1, AttemptTimeout: given}, answer, func(t *testing.T, s *server, c *client.Client) {
			start := time.Now()
			_, err := c.RecordSale(t.Context(), report("order-1"))
			if err == nil || !strings.Contains(err.Error(), "no answer within "+want.String()) || errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
			if took := time.Since(start); took != want {
				t.Errorf("it took %s, want %s", took, want)
			}
		})
	}
}
