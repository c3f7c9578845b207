package outbox

import (
	"testing"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
)

func TestWhatTheStreamMayLack(t *testing.T) {
	clock := time.Date(2026, 8, 14, 12, 0, 0, 0, time.UTC)
	born, week := clock.AddDate(0, -1, 0), clock.AddDate(0, 0, -7)
	checked, waited, forgotten := clock.Add(-2*time.Second), clock.Add(-time.Hour), clock.AddDate(0, 0, -8)
	usual := bus.Condition{ServerID: "A", Created: born, FirstSeq: 10, LastSeq: 100, LastTime: checked}
	with := func(change func(*bus.Condition)) bus.Condition {
		now := usual
		change(&now)
		return now
	}
	for name, c := range map[string]struct {
		before memory // over what is usual
		now    bus.Condition
		since  time.Time // zero: the stream lacks nothing
	}{
		"nothing happened":            {now: usual},
		"messages came":               {now: with(func(c *bus.Condition) { c.LastSeq = 200 })},
		"old messages expired":        {now: with(func(c *bus.Condition) { c.FirstSeq = 90; c.LastSeq = 200 })},
		"all but the last expired":    {now: with(func(c *bus.Condition) { c.FirstSeq = 100 })},
		"another member, known":       {before: memory{servers: []string{"B", "A"}}, now: with(func(c *bus.Condition) { c.ServerID = "B" })},
		"it is still empty":           {before: memory{firstSeq: 101}, now: with(func(c *bus.Condition) { c.FirstSeq = 101 })},
		"it is filled again":          {before: memory{firstSeq: 101}, now: with(func(c *bus.Condition) { c.FirstSeq = 101; c.LastSeq = 150 })},
		"waiting events were drained": {before: memory{drained: &waited}, now: usual},

		"another stream":             {now: with(func(c *bus.Condition) { c.Created = clock }), since: week},
		"another, longer stream":     {now: with(func(c *bus.Condition) { c.Created = clock; c.LastSeq = 500 }), since: week},
		"purged":                     {now: with(func(c *bus.Condition) { c.FirstSeq = 101; c.LastTime = time.Time{} }), since: week},
		"purged and filled":          {now: with(func(c *bus.Condition) { c.FirstSeq = 101; c.LastSeq = 150 }), since: week},
		"filled, purged and filled":  {before: memory{firstSeq: 101}, now: with(func(c *bus.Condition) { c.FirstSeq = 102; c.LastSeq = 150 }), since: week},
		"lost all":                   {now: with(func(c *bus.Condition) { c.FirstSeq = 1; c.LastSeq = 0; c.LastTime = time.Time{} }), since: week},
		"lost its end":               {now: with(func(c *bus.Condition) { c.LastSeq = 99 }), since: checked.Add(-time.Minute)},
		"lost its end, on another":   {now: with(func(c *bus.Condition) { c.LastSeq = 99; c.ServerID = "B"; c.LastTime = waited }), since: waited.Add(-time.Minute)},
		"ends before its retention":  {now: with(func(c *bus.Condition) { c.LastSeq = 99; c.LastTime = forgotten }), since: week},
		"restarted":                  {now: with(func(c *bus.Condition) { c.ServerID = "B" }), since: checked.Add(-time.Minute)},
		"restarted, filled since":    {now: with(func(c *bus.Condition) { c.ServerID = "B"; c.LastSeq = 500 }), since: checked.Add(-time.Minute)},
		"restarted, not seen lately": {before: memory{checkedAt: forgotten}, now: with(func(c *bus.Condition) { c.ServerID = "B" }), since: week},
		"restarted after a drain":    {before: memory{drained: &waited}, now: with(func(c *bus.Condition) { c.ServerID = "B" }), since: waited},
		"lost the end of a drain":    {before: memory{drained: &waited}, now: with(func(c *bus.Condition) { c.LastSeq = 99 }), since: waited},
		"a drain of what is too old": {before: memory{drained: &forgotten}, now: with(func(c *bus.Condition) { c.ServerID = "B" }), since: week},
		"a drain of what is young":   {before: memory{drained: &checked}, now: with(func(c *bus.Condition) { c.ServerID = "B" }), since: checked.Add(-time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			before := memory{servers: []string{"A"}, created: born, firstSeq: 10, lastSeq: 100, checkedAt: checked, clock: clock, drained: c.before.drained}
			if c.before.servers != nil {
				before.servers = c.before.servers
			}
			if c.before.firstSeq != 0 {
				before.firstSeq = c.before.firstSeq
			}
			if !c.before.checkedAt.IsZero() {
				before.checkedAt = c.before.checkedAt
			}
			since, reason := lostSince(before, c.now)
			if !since.Equal(c.since) || (reason == "") != c.since.IsZero() {
				t.Errorf("since %s, because %q; want %s", since, reason, c.since)
			}
		})
	}
}

func TestAMessageIDTellsItsRepair(t *testing.T) {
	id := event.IDOf("sale.recorded", "one")
	for _, repair := range []int{0, 1, 27} {
		if got := repairOf(messageID(id, repair)); got != repair {
			t.Errorf("%s is of the repair %d", messageID(id, repair), got)
		}
	}
	if got := messageID(id, 0); got != id.String() {
		t.Errorf("the first id is %s", got)
	}
	if got := messageID(id, 3); got != id.String()+":r3" {
		t.Errorf("the third repair has the id %s", got)
	}
}
