package webhooks

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// backoff is how long a delivery waits after its first attempt has failed, after its
// second, and so on; the last one holds for all that follow.
var backoff = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}

// longestAsked bounds what a receiver can ask for by Retry-After.
const longestAsked = 24 * time.Hour

// jitterPart is the part of a wait by which it may grow, so that what failed together
// does not come again together.
const jitterPart = 5

// retrier decides whether a delivery is attempted again.
type retrier struct{ backoff []time.Duration }

// again returns after how long the job is to be attempted again, now that an attempt
// has ended so; 0: never. It is never less than the receiver asked for, up to a day.
func (r retrier) again(job claimed, o outcome) time.Duration {
	made := job.attempts + 1
	if o.Delivered || made >= job.allowed || o.StatusCode == http.StatusGone {
		return 0
	}
	wait := max(r.backoff[min(made, len(r.backoff))-1], min(o.RetryAfter, longestAsked))
	return wait + rand.N(wait/jitterPart+1)
}
