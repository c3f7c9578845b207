package auth_test

import (
	"testing"
	"time"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/testkit"
)

func TestWhatMovesMoneyOrKeysIsRefusedWhenNothingWasHeardForOverAMinute(t *testing.T) {
	w := newWorld(t)
	sales := newRegistry()
	w.announce(sales)
	good, _ := sales.issue(t)
	revoked, revokedID := sales.issue(t)
	sales.revoke(revokedID)
	reader, _ := sales.issue(t, auth.SalesRead)
	b := w.bus()
	c, _ := w.copyOf(b)
	w.eventually(c, patience, reader, auth.SalesRead, "")
	w.eventually(c, patience, good, auth.KeysWrite, "")
	testkit.Eventually(t, patience, "the revoked key in the database", func() bool { return w.savedVersion(revokedID) > 0 })
	w.nats.Stop()
	testkit.Eventually(t, patience, "the loss of NATS", func() bool { return !b.Connected() })

	w.clock.forward(time.Minute)
	for _, scope := range auth.AllScopes {
		if got := w.verdict(c, good, scope); got != "" {
			t.Errorf("%s after a minute: %q", scope, got)
		}
	}
	w.clock.forward(time.Nanosecond)
	sensitive := auth.Scopes{auth.WithdrawalsWrite, auth.WithdrawalsApprove, auth.KeysWrite}
	for _, scope := range auth.AllScopes {
		want := ""
		if sensitive.Has(scope) {
			want = "unavailable"
		}
		if got := w.verdict(c, good, scope); got != want {
			t.Errorf("%s after over a minute: %q, want %q", scope, got, want)
		}
	}
	if got := w.verdict(c, revoked, auth.KeysWrite); got != "unauthorized" {
		t.Errorf("a revoked key: %q", got)
	}
	if got := w.verdict(c, reader, auth.KeysWrite); got != "insufficient_scope" {
		t.Errorf("a key without the scope: %q", got)
	}
	if unknown, _, _, err := auth.NewSecret(); err != nil || w.verdict(c, unknown, auth.KeysWrite) != "unauthorized" {
		t.Errorf("an unknown key: %q, %v", w.verdict(c, unknown, auth.KeysWrite), err)
	}

	start := time.Now()
	testkit.Eventually(t, patience, "a second", func() bool {
		if got := w.verdict(c, good, auth.KeysWrite); got != "unavailable" {
			t.Fatalf("it takes itself for fresh again, without NATS: %q", got)
		}
		return time.Since(start) > time.Second
	})

	w.nats.Start()
	w.eventually(c, patience, good, auth.KeysWrite, "")
}

// known has the service's database remember a key that moves money.
func (w *world) known() (text string) {
	w.t.Helper()
	text, key := makeKey(w.t, 1)
	if _, err := w.pool.Exec(w.t.Context(), `insert into known_keys values ($1, $2, $3, false, $4, null, null, 1)`,
		key.ID, key.Hash[:], key.TenantID, key.Scopes.Strings()); err != nil {
		w.t.Fatal(err)
	}
	return text
}

func TestACopyThatHasNeverHeardAnythingIsDeafHoweverOftenItStarts(t *testing.T) {
	w := newWorld(t)
	text := w.known()
	b := w.bus() // there is a server, and no bucket
	for range 2 {
		c, stop := w.copyOf(b)
		if got := w.verdict(c, text, auth.KeysWrite); got != "unavailable" {
			t.Errorf("at the start: %q", got)
		}
		if got := w.verdict(c, text, auth.SalesRead); got != "" {
			t.Errorf("what moves neither money nor keys: %q", got)
		}
		stop()
	}
	c, _ := w.copyOf(b)
	w.announce(newRegistry()) // of a platform that has no keys yet
	w.eventually(c, patience, text, auth.KeysWrite, "")
}

func TestARevocationOfTheTimeBeforeTheStartHoldsFromTheFirstCall(t *testing.T) {
	w := newWorld(t)
	sales := newRegistry()
	stopAnnouncing := w.announce(sales)
	good, goodID := sales.issue(t)
	revoked, revokedID := sales.issue(t)
	b := w.bus()
	_, stop := w.copyOf(b)
	w.saved(goodID, 1)
	w.saved(revokedID, 2)
	stop()
	sales.revoke(revokedID)
	testkit.Eventually(t, patience, "the revocation in the bucket", func() bool {
		entry, err := w.bucket().Get(t.Context(), revokedID)
		return err == nil && entry.Revision() > 2
	})
	stopAnnouncing()

	c, _ := w.copyOf(b)
	if got := w.verdict(c, revoked, auth.KeysWrite); got != "unauthorized" {
		t.Errorf("the revoked key: %q", got)
	}
	if got := w.verdict(c, good, auth.KeysWrite); got != "" {
		t.Errorf("the other one: %q", got)
	}
}
