package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
)

func TestADayIsDroppedEightDaysAfterItEnded(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	now := time.Now().UTC()
	if dropped := w.drop(now); len(dropped) != 0 {
		t.Errorf("dropped today: %v", dropped)
	}
	if dropped := w.drop(now.AddDate(0, 0, 1)); !slices.Equal(dropped, []string{partition(now.AddDate(0, 0, -8))}) {
		t.Errorf("dropped tomorrow: %v", dropped)
	}
}

func TestADayWithPendingEventsIsNotDroppedNorAnyAfterIt(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	first, last := saleAt(t, "first", midnight), saleAt(t, "last", midnight.Add(24*time.Hour-time.Microsecond))
	w.add(w.newRelay(), first, last)
	later := midnight.AddDate(0, 0, 30)

	w.exec(`delete from outbox_pending where event_id = $1`, [16]byte(first.ID))
	w.drop(later)
	if left := w.partitions(); len(left) != 8 || slices.Min(left) != partition(midnight) {
		t.Fatalf("left are %v", left)
	}
	if n := w.ask(`select count(*) from outbox`); n != 2 {
		t.Errorf("the log has %d events", n)
	}

	w.exec(`delete from outbox_pending`)
	w.drop(later)
	if left := w.partitions(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

func (w *world) drop(now time.Time) []string {
	w.t.Helper()
	dropped, err := postgres.DropPartitions(w.t.Context(), w.pool, outbox.Schema.Partitions, now)
	if err != nil {
		w.t.Fatal(err)
	}
	return dropped
}

func (w *world) partitions() []string {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `select inhrelid::regclass::text from pg_inherits where inhparent = 'outbox'::regclass`)
	if err != nil {
		w.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

func partition(day time.Time) string { return "outbox_p" + day.Format("20060102") }
