package outbox_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// tomorrow is a time whose events no sweep takes today: what is on the stream came
// from memory.
func tomorrow() time.Time { return time.Now().AddDate(0, 0, 1) }

func TestAnEventIsPublishedFromMemoryAfterItsCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	open, first := saleAt(t, "open", tomorrow()), saleAt(t, "first", tomorrow())
	err := w.transact(func(tx *postgres.Tx) error {
		r.Add(tx, open)
		w.add(r, first) // whatever open had published would be there before
		w.awaitStream(ids(0, first)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.awaitStream(ids(0, first, open)...)
}

func TestAnEventOfATransactionThatIsRolledBackIsNeverPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	failure := errors.New("a rule is broken")
	err := w.transact(func(tx *postgres.Tx) error {
		r.Add(tx, sale(t, "undone"))
		return failure
	})
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	fromMemory, swept := saleAt(t, "from memory", tomorrow()), sale(t, "swept")
	w.add(r, fromMemory)
	w.add(w.newRelay(), swept)
	w.awaitStream(ids(0, fromMemory, swept)...)
	if n := w.ask(`select count(*) from outbox`); n != 2 {
		t.Errorf("the log has %d events", n)
	}
}

func TestAnEventThatIsStoredAlreadyIsAnError(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	r := w.newRelay()
	e := sale(t, "one")
	if err := w.transact(func(tx *postgres.Tx) error { r.Add(tx, e, e); return nil }); err == nil {
		t.Error("it was added twice in one call")
	}
	w.add(r, e)
	if err := w.transact(func(tx *postgres.Tx) error { r.Add(tx, sale(t, "another"), e); return nil }); err == nil {
		t.Error("it was added again")
	}
	if n := w.ask(`select count(*) from outbox`); n != 1 || w.pending() != 1 {
		t.Errorf("the log has %d events, %d of them pending", n, w.pending())
	}
}

func TestAddingNothingIsNoError(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	w.add(w.newRelay())
}

func TestTheStreamHasTheBytesThatAreStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fromMemory, swept := saleAt(t, "from memory <é> 🙂", tomorrow()), sale(t, "swept <é> 🙂")
	fromMemory.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	swept.Traceparent = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w.add(w.start(), fromMemory)
	w.add(w.newRelay(), swept)
	w.awaitStream(ids(0, fromMemory, swept)...)
	for _, m := range w.messages() {
		e := fromMemory
		if m.Header.Get("traceparent") != e.Traceparent {
			e = swept
		}
		if m.Subject != event.NameSaleRecorded || string(m.Data) != string(e.Body) || m.Header.Get("traceparent") != e.Traceparent {
			t.Errorf("%s carries %s with %v", m.Subject, m.Data, m.Header)
		}
		var stored []byte
		if err := w.pool.QueryRow(t.Context(), `select body from outbox where event_id = $1`, [16]byte(e.ID)).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(stored, m.Data) {
			t.Errorf("stored is %s", stored)
		}
	}
}
