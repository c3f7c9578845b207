package bus_test

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/testkit"
)

func TestAClientOfAnyNameGetsAnswersAtAnInboxOfItsOwn(t *testing.T) {
	t.Parallel()
	url := testkit.NATS(t).URL()
	for name, want := range map[string]string{"": "_INBOX", "sales": "_INBOX.sales", "a b.c*>\t": "_INBOX.a_b_c___"} {
		if got := bus.InboxOf(name); got != want {
			t.Errorf("%q has the inbox %s, want %s", name, got, want)
		}
		b, err := bus.Connect(bus.Config{URL: url, Name: name}, zap.NewNop())
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		t.Cleanup(b.Close)
		testkit.Eventually(t, 20*time.Second, "the server answers", func() bool {
			_, err := b.JetStream().AccountInfo(t.Context())
			return err == nil
		})
	}
}
