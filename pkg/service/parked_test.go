package service

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestAnOperatorSeesToParkedEvents(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, bus.Schema, shopSchema)
	pool := open(t, url)
	park := func(cause string) event.Sealed {
		t.Helper()
		e, err := event.Seal(uuid.New(), cause, time.Now(), event.GoalReached{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(),
			`insert into parked_events (consumer, event_id, name, tenant_id, body, reason) values ('shop-hear', $1, $2, $3, $4, 'it was broken')`,
			[16]byte(e.ID), e.Name, e.TenantID, e.Body); err != nil {
			t.Fatal(err)
		}
		return e
	}
	e, hopeless := park("a goal"), park("another goal")
	id := e.ID.String()
	parked := func(env string, args ...string) (status int, stdout, stderr string) {
		t.Helper()
		return command(t, "shop", []string{"DATABASE_URL=" + url, env}, append([]string{"parked"}, args...)...)
	}
	shows := func(what string, status, wantStatus int, output string, wanted ...string) {
		t.Helper()
		if status != wantStatus {
			t.Errorf("%s: status %d, want %d: %s", what, status, wantStatus, output)
		}
		for _, want := range wanted {
			if !strings.Contains(output, want) {
				t.Errorf("%s does not show %q: %s", what, want, output)
			}
		}
	}

	status, stdout, stderr := parked("", "list")
	shows("the list", status, 0, stdout+stderr, id, "goal.reached", "shop-hear", e.TenantID.String(), "it was broken")
	status, stdout, stderr = parked("", "show", id)
	shows("the event", status, 0, stdout+stderr, id, "it was broken", string(e.Body))

	status, stdout, stderr = parked("", "retry", id)
	shows("a retry before the cause is mended", status, 1, stdout+stderr, "the cause is not mended")
	status, stdout, _ = parked("", "list")
	shows("the list", status, 0, stdout, id)
	status, stdout, stderr = parked("SHOP_MENDED=yes", "retry", id)
	shows("a retry", status, 0, stdout+stderr, id+" is handled")
	if _, stdout, _ = parked("", "list"); strings.Contains(stdout, id) || !strings.Contains(stdout, hopeless.ID.String()) {
		t.Errorf("after the retry: %s", stdout)
	}

	status, stdout, stderr = parked("", "drop", hopeless.ID.String())
	shows("a drop", status, 0, stdout+stderr, hopeless.ID.String()+" is dropped")
	if _, stdout, _ = parked("", "list"); strings.Contains(stdout, "evt_") {
		t.Errorf("something is still parked: %s", stdout)
	}

	for _, verb := range []string{"show", "retry", "drop"} {
		status, stdout, stderr = parked("", verb, id)
		shows(verb+" of what is not parked", status, 1, stdout+stderr, "no such event is parked")
		status, stdout, stderr = parked("", verb)
		shows(verb+" of nothing", status, 1, stdout+stderr, "name one event by its id")
		status, stdout, stderr = parked("", verb, "evt_1")
		shows(verb+" of what is no id", status, 1, stdout+stderr, "evt_1")
	}
	if status, _, _ = parked("", "list", "all"); status != 2 {
		t.Errorf("an argument too many: status %d", status)
	}
}
