package webhooks

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/bus"
)

func TestAnEventThatIsGoneFromTheFeedIsMissedInItsWindow(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	s := k.service(lenient)
	start := time.Now().UTC().Add(-time.Hour).Truncate(time.Minute)
	gone := sold(t, uuid.New(), start.Add(time.Minute-time.Microsecond))
	k.fanOut(s, sold(t, uuid.New(), start), joined(t, uuid.New(), start), gone,
		sold(t, uuid.New(), start.Add(-time.Microsecond)), sold(t, uuid.New(), start.Add(time.Minute)))
	k.exec(`insert into windows (consumer, started_at, ended_at, stream, counted_at, events, centavos, commission_centavos)
		values ('webhooks-sales', $1, $2, 'SALES', $2, 3, 1, 1), ('webhooks-goals', $1, $2, 'GOALS', $2, 0, 0, 0)`, start, start.Add(time.Minute))
	differences := func() (texts []string) {
		t.Helper()
		windows, found, err := bus.CheckNow(t.Context(), k.pool, s.Consumers())
		if err != nil || windows != 2 {
			t.Fatalf("%d windows are compared, %v", windows, err)
		}
		for _, d := range found {
			texts = append(texts, d.Consumer+" "+d.Window()+": "+d.Text)
		}
		return texts
	}
	if found := differences(); len(found) != 0 {
		t.Errorf("with all events it differs: %v", found)
	}
	k.exec(`delete from events where event_id = $1`, [16]byte(gone.ID))
	if found := differences(); len(found) != 1 || found[0] != "webhooks-sales SALES/"+start.Format(time.RFC3339)+": 3 events were told, 2 are here" {
		t.Errorf("with an event gone it differs in %q", found)
	}
}
