package event_test

import (
	"maps"
	"testing"
	"time"

	"partilha.dev/pkg/event"
)

func TestAWindowIsReadAsItWasWrittenAndIsNoEvent(t *testing.T) {
	start := time.Date(2026, 7, 14, 10, 0, 0, 0, time.UTC)
	w := event.Window{Start: start, End: start.Add(time.Minute), CountedAt: start.Add(90 * time.Second), Events: map[string]event.Tally{
		"sale.recorded": {Count: 2, Centavos: 20100, Commissions: 1006}, "sale.refunded": {Count: 1, Centavos: 50},
	}}
	sealed, err := w.Seal("window.sales")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"start":"2026-07-14T10:00:00Z","end":"2026-07-14T10:01:00Z","counted_at":"2026-07-14T10:01:30Z","events":` +
		`{"sale.recorded":{"count":2,"amount_centavos":20100,"commission_centavos":1006},"sale.refunded":{"count":1,"amount_centavos":50,"commission_centavos":0}}}`
	if string(sealed.Body) != want {
		t.Errorf("written as\n%s, want\n%s", sealed.Body, want)
	}
	read, err := event.OpenWindow(sealed.Body)
	if err != nil || !read.Start.Equal(w.Start) || !read.End.Equal(w.End) || !read.CountedAt.Equal(w.CountedAt) || !maps.Equal(read.Events, w.Events) {
		t.Errorf("read as %+v, %v", read, err)
	}
	if _, err := event.Open(sealed.Body); err == nil {
		t.Error("it can be taken for an event")
	}
	w.CountedAt = w.CountedAt.Add(time.Second)
	if again, err := w.Seal("window.sales"); err != nil || again.ID == sealed.ID {
		t.Errorf("another count has the same id, %v", err)
	}
	if sum := w.Of([]string{"sale.recorded", "sale.refunded", "partner.created"}); sum != (event.Tally{Count: 3, Centavos: 20150, Commissions: 1006}) {
		t.Errorf("they come to %+v", sum)
	}
}
