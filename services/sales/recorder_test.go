package sales

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/testkit"
)

// idle is a recorder on the fixture's database that does not run yet, so that what is
// submitted gathers.
func (f *fixture) idle(writers int) *recorder {
	return newRecorder(f.deps.Pool, f.service.relay, writers)
}

// decided makes entries for the fixture's partner, each with every member that a sale
// can have, decided on the catalogue as it is now.
func (f *fixture) decided() func(ref string) *entry {
	f.t.Helper()
	tenant := uuid.MustParse(f.tenant)
	r := report{ReferralCode: f.code, CampaignID: uuid.MustParse(f.campaign), PlanID: uuid.MustParse(f.plan), Amount: money.BRL(100_50)}
	terms, version, refusal, err := f.service.considerTerms(f.t.Context(), tenant, r.offerKey())
	if err != nil || refusal != nil {
		f.t.Fatal(err, refusal)
	}
	return func(ref string) *entry {
		f.t.Helper()
		customer, notes := "customer of "+ref, "notes of "+ref
		r.ExternalRef, r.CustomerRef, r.Notes = ref, &customer, &notes
		r.SoldAt = &openapi.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 1000, time.UTC)}
		e, err := newEntry(f.t.Context(), tenant, version, r, terms, time.Now())
		if err != nil {
			f.t.Fatal(err)
		}
		e.event.Traceparent = "trace of " + ref
		return e
	}
}

// isRecorded fails the test unless the entry's sale and event are in the database,
// member for member.
func (f *fixture) isRecorded(e *entry) {
	f.t.Helper()
	s, found, err := findSale(f.t.Context(), f.deps.Pool, e.tenant, e.sale.ExternalRef)
	if err != nil || !found || !reflect.DeepEqual(s, e.sale) {
		f.t.Errorf("recorded as %+v %t %v, want %+v", s, found, err, e.sale)
	}
	told := event.Sealed{ID: e.event.ID}
	err = f.deps.Pool.QueryRow(f.t.Context(), `select name, created_at, tenant_id, body, traceparent from outbox where event_id = $1`, [16]byte(e.event.ID)).
		Scan(&told.Name, &told.CreatedAt, &told.TenantID, &told.Body, &told.Traceparent)
	if err != nil || !reflect.DeepEqual(told, e.event) {
		f.t.Errorf("told as %+v %v, want %+v", told, err, e.event)
	}
	if n := f.rows(fmt.Sprintf("outbox_pending where event_id = '%s'", uuid.UUID(e.event.ID))); n != 1 {
		f.t.Errorf("%d events wait to be published, want 1", n)
	}
}

// submission is an entry with what its caller was answered.
type submission struct {
	*entry
	ctx     context.Context
	outcome outcome
	err     error
}

// submitTogether submits the entries so that the recorder, which is not to run yet,
// finds all of them waiting when it starts. It returns when each caller has an answer.
func submitTogether(t *testing.T, r *recorder, submissions ...*submission) {
	t.Helper()
	var answered sync.WaitGroup
	for i, s := range submissions {
		if s.ctx == nil {
			s.ctx = t.Context()
		}
		answered.Go(func() { s.outcome, s.err = r.submit(s.ctx, s.entry) })
		testkit.Eventually(t, soon, "the entry waits", func() bool { return len(r.queue) == i+1 })
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.run(ctx) }()
	answered.Wait()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestInAGroupEachSaleIsAnsweredForItself(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	known := f.post("/api/v1/sales", f.sale("known")).want(201).text("sale_id")
	recorded := f.rows("outbox")
	decide := f.decided()
	submit := func(ref string, change func(*entry)) *submission {
		e := decide(ref)
		if change != nil {
			change(e)
		}
		return &submission{entry: e}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	var good []*submission
	for i := range 5 {
		good = append(good, submit(fmt.Sprint("good-", i), nil))
	}
	tooMuch := submit("too much", func(e *entry) { e.sale.CommissionAmount = e.sale.Amount + 1 })
	unprintable := submit("unprintable", func(e *entry) { text := "a\x00b"; e.sale.Notes = &text })
	repeat := submit("known", nil)
	twins := []*submission{submit("twin", nil), submit("twin", nil)}
	stale := submit("stale", func(e *entry) { e.version-- })
	staleRepeat := submit("known", func(e *entry) { e.version-- })
	gone := submit("gone", nil)
	gone.ctx = cancelled
	submitTogether(t, f.idle(1), good[0], tooMuch, good[1], repeat, twins[0], good[2], gone, unprintable, stale, twins[1], good[3], staleRepeat, good[4])

	for _, s := range good {
		if s.err != nil || !s.outcome.recorded || s.outcome.known != nil {
			t.Errorf("%s: %+v %v, want it recorded", s.sale.ExternalRef, s.outcome, s.err)
		}
		f.isRecorded(s.entry)
	}
	for _, s := range []*submission{tooMuch, unprintable} {
		if s.err == nil || fault.Of(s.err) != nil {
			t.Errorf("%s: %+v %v, want the database's refusal", s.sale.ExternalRef, s.outcome, s.err)
		}
	}
	for _, s := range []*submission{repeat, staleRepeat} {
		if s.err != nil || s.outcome.recorded || s.outcome.known == nil || s.outcome.known.SaleID.String() != known {
			t.Errorf("the repeat: %+v %v, want sale %s", s.outcome, s.err, known)
		}
	}
	if twins[0].outcome.recorded == twins[1].outcome.recorded {
		t.Errorf("twins: %+v and %+v, want one recorded", twins[0].outcome, twins[1].outcome)
	}
	for i, s := range twins {
		if first := twins[1-i].sale.SaleID; !s.outcome.recorded && (s.err != nil || s.outcome.known == nil || s.outcome.known.SaleID != first) {
			t.Errorf("the second of twins: %+v %v, want sale %s", s.outcome, s.err, first)
		}
	}
	if s := stale; s.err != nil || s.outcome.recorded || s.outcome.known != nil {
		t.Errorf("stale: %+v %v, want it to be decided anew", s.outcome, s.err)
	}
	if fault.KindOf(gone.err) != fault.Unavailable || !errors.Is(gone.err, context.Canceled) {
		t.Errorf("a caller who left: %v", gone.err)
	}
	f.post("/api/v1/sales", f.sale("gone")).want(200).shows("sale_id", gone.sale.SaleID.String())
	if n := f.rows("sales"); n != 1+5+1+1 { // known, good, one twin, gone
		t.Errorf("%d sales are recorded, want 8", n)
	}
	if n := f.rows("outbox") - recorded; n != 7 {
		t.Errorf("%d events were added, want 7", n)
	}
}

func TestALoneSaleIsRecordedWithEveryMember(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	e := f.decided()("alone")
	if o, err := f.service.recorder.submit(t.Context(), e); err != nil || !o.recorded {
		t.Fatal(o, err)
	}
	f.isRecorded(e)
}

func TestWhatWaitsWhenTheRecorderStopsIsRecordedFirst(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	const waiting = queueSize
	r := f.idle(3)
	decide := f.decided()
	for i := range waiting {
		e := decide(fmt.Sprint("order-", i))
		e.done = make(chan outcome, 1)
		r.queue <- e
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := r.run(stopped); err != nil {
		t.Error(err)
	}
	if n := f.rows("sales"); n != waiting {
		t.Errorf("%d sales are recorded, want %d", n, waiting)
	}
	if _, err := r.submit(t.Context(), decide("late")); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a sale after the stop: %v", err)
	}
}

func TestOneMoreSaleThanMayWaitIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	s, err := New(t.Context(), Config{AdminToken: operatorToken}, f.deps) // and never run
	if err != nil {
		t.Fatal(err)
	}
	for range queueSize {
		s.recorder.queue <- nil
	}
	f.url = serve(t, s.Handler())
	f.recordsNothing(func() { f.post("/api/v1/sales", f.sale("order-1")).refused(503, "unavailable") })
}
