package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

func TestAStreamKeepsAWeekOnDiskAndRefusesRatherThanForgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stream, err := w.bus.JetStream().Stream(t.Context(), bus.Sales.Name)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.MaxAge != 7*24*time.Hour || c.Storage != jetstream.FileStorage || c.Discard != jetstream.DiscardNew || c.Retention != jetstream.LimitsPolicy {
		t.Errorf("its settings are %+v", c)
	}
}

func TestInspectTellsTheConditionAndMakesAStreamThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inspect := func() bus.Condition {
		t.Helper()
		c, err := w.bus.Inspect(t.Context(), bus.Sales)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	empty := inspect()
	if empty.FirstSeq != 1 || empty.LastSeq != 0 || !empty.LastTime.IsZero() || empty.ServerID == "" || empty.Created.IsZero() {
		t.Errorf("empty it is %+v", empty)
	}
	w.publish("", sales(t, 3)...)
	filled := inspect()
	if filled.FirstSeq != 1 || filled.LastSeq != 3 || filled.LastTime.IsZero() || filled.ServerID != empty.ServerID || !filled.Created.Equal(empty.Created) {
		t.Errorf("filled it is %+v", filled)
	}
	if err := w.bus.JetStream().DeleteStream(t.Context(), bus.Sales.Name); err != nil {
		t.Fatal(err)
	}
	if another := inspect(); another.LastSeq != 0 || another.Created.Equal(empty.Created) {
		t.Errorf("made again it is %+v", another)
	}
	w.nats.Kill()
	w.nats.Start()
	testkit.Eventually(t, soon, "the server is back as another process", func() bool {
		id := w.bus.ServerID()
		return id != "" && id != empty.ServerID
	})
}

func TestPublishTellsWhatIsStoredAndWhatIsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 3)
	events[1].Name = "nobody.listens"
	outgoing := make([]bus.Outgoing, len(events))
	for i, e := range events {
		outgoing[i] = bus.Outgoing{Sealed: e, MessageID: e.ID.String()}
	}
	stored, err := w.bus.Publish(t.Context(), outgoing)
	if err == nil || len(stored) != 2 || stored[0].ID != events[0].ID || stored[1].ID != events[2].ID {
		t.Errorf("stored are %d events, %v", len(stored), err)
	}
	w.nats.Kill()
	testkit.Eventually(t, soon, "the connection is lost", func() bool { return !w.bus.Connected() })
	if stored, err := w.bus.Publish(t.Context(), outgoing); err == nil || len(stored) != 0 {
		t.Errorf("without a server %d events are stored, %v", len(stored), err)
	}
	if _, err := w.bus.Inspect(t.Context(), bus.Sales); err == nil {
		t.Error("without a server the stream was inspected")
	}
}

func TestAMessageIsTheBytesOfTheEventUnderItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := sale(t, "one")
	e.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w.publish(":r7", e)
	stream, err := w.bus.JetStream().Stream(t.Context(), bus.Sales.Name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != event.NameSaleRecorded || string(m.Data) != string(e.Body) {
		t.Errorf("%s carries %s", m.Subject, m.Data)
	}
	if m.Header.Get("Nats-Msg-Id") != e.ID.String()+":r7" || m.Header.Get("traceparent") != e.Traceparent || len(m.Header) != 2 {
		t.Errorf("its headers are %v", m.Header)
	}
}
