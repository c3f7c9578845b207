package webhooks

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

// wireSummary is a day as a caller reads it.
type wireSummary struct {
	Date string
	Data []struct {
		Event string
		Count int64
		Sums  map[string]json.Number
	}
}

// of is what the summary says of a kind of event.
func (w wireSummary) of(name string) string {
	for _, kind := range w.Data {
		if kind.Event == name {
			return fmt.Sprint(kind.Count, kind.Sums)
		}
	}
	return "nothing"
}

func (k *stack) summary(s *Service, who member, query string) (day wireSummary) {
	k.t.Helper()
	k.ask(s, who, "GET", eventsPath+"/summary"+query, "").must(200, &day)
	return day
}

func TestADayIsSummarisedExactly(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, stranger := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(lenient)
	today := dayOf(time.Now())
	first, last := today, today.Add(24*time.Hour-time.Microsecond)
	some, none := money.BRL(10), (*money.BRL)(nil)
	make := func(at time.Time, data event.Payload) event.Sealed {
		t.Helper()
		return seal(t, who.tenant, uuid.New(), at, data)
	}
	k.fanOut(s,
		make(first, event.SaleRecorded{Amount: 99_999_999_999, CommissionAmount: 5}),
		make(last, event.SaleRecorded{Amount: 99_999_999_999, CommissionAmount: 7}),
		make(first.Add(-time.Microsecond), event.SaleRecorded{Amount: 20, CommissionAmount: 1}),
		make(first, event.SaleRefunded{Amount: 3, CommissionReversed: 2, CommissionAmount: 77, SaleAmount: 88}),
		make(first, event.ConversionRecorded{Value: &some, CommissionAmount: none}),
		make(first, event.ConversionRecorded{Value: none, CommissionAmount: &some}),
		make(first, event.PartnerCreated{}),
		make(first, event.CommissionAvailable{Amount: 11}),
		make(first, event.CommissionBonus{Amount: 12}),
		make(first, event.CommissionReleased{Amount: 13, CommissionAmount: 14}),
		make(first, event.CommissionReversed{Amount: 15, ReversedTotal: 16}),
		make(first, event.GoalReached{Reward: &some}),
		make(first, event.GoalReached{}),
	)
	day := k.summary(s, who, "?date="+today.Format(time.DateOnly))
	for name, want := range map[string]string{
		event.NameSaleRecorded:            "2 map[amount_brl:1999999999.98 commission_amount_brl:0.12]",
		event.NameSaleRefunded:            "1 map[amount_brl:0.03 commission_reversed_brl:0.02]",
		event.NameConversionRecorded:      "2 map[commission_amount_brl:0.10 value_brl:0.10]",
		event.NamePartnerCreated:          "1 map[]",
		event.NameCommissionAvailable:     "1 map[amount_brl:0.11]",
		event.NameCommissionBonus:         "1 map[amount_brl:0.12]",
		event.NameCommissionReleased:      "1 map[amount_brl:0.13]",
		event.NameCommissionReversed:      "1 map[amount_brl:0.15]",
		event.NameWithdrawalRequested:     "0 map[amount_brl:0.00]",
		event.NameWithdrawalStatusChanged: "0 map[approved_brl:0.00 cancelled_brl:0.00 failed_brl:0.00 paid_brl:0.00 rejected_brl:0.00]",
		event.NameGoalReached:             "2 map[reward_brl:0.10]",
	} {
		if got := day.of(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if today := k.summary(s, who, ""); fmt.Sprint(today) != fmt.Sprint(day) || len(day.Data) != len(deliverable) {
		t.Errorf("without a date %v, want today's %v", today, day)
	}
	yesterday := k.summary(s, who, "?date="+today.AddDate(0, 0, -1).Format(time.DateOnly))
	if got := yesterday.of(event.NameSaleRecorded); got != "1 map[amount_brl:0.20 commission_amount_brl:0.01]" {
		t.Errorf("yesterday %s", got)
	}
	if got := k.summary(s, stranger, "").of(event.NameSaleRecorded); got != "0 map[amount_brl:0.00 commission_amount_brl:0.00]" {
		t.Errorf("a stranger reads %s", got)
	}
	for _, date := range []string{"", "x", "2026-02-30", "2026-7-1", today.AddDate(0, 0, 1).Format(time.DateOnly), today.AddDate(0, 0, -31).Format(time.DateOnly), "0000-00-00"} {
		k.ask(s, who, "GET", eventsPath+"/summary?date="+date, "").refused(400, "invalid_parameter")
	}
	k.summary(s, who, "?date="+today.AddDate(0, 0, -30).Format(time.DateOnly))
}

func TestWhatCameOfWithdrawalsIsAddedUpByStatus(t *testing.T) {
	t.Parallel()
	sealed := func(status string, amount string) event.Sealed {
		body := fmt.Sprintf(`{"data":{"amount_brl":%s,"status":%q,"previous_status":"paid"}}`, amount, status)
		return event.Sealed{Name: event.NameWithdrawalStatusChanged, CreatedAt: time.Now(), Body: []byte(body)}
	}
	totals, err := totalsOf([]event.Sealed{sealed("paid", "10.50"), sealed("paid", "0.01"), sealed("failed", "3"), sealed("new", "9")})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for key, total := range totals {
		got[key.member] = total
	}
	if want := map[string]int64{"": 4, "paid_brl": 1051, "failed_brl": 300}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("totals %v, want %v", got, want)
	}
	if _, err := totalsOf([]event.Sealed{sealed("paid", `"10"`)}); err == nil {
		t.Error("an amount that is text is added up")
	}
}

// What was told twice counts once, and at every moment the totals are those of the events.
func TestASummaryIsAlwaysThatOfTheEvents(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	tenants := []uuid.UUID{uuid.New(), uuid.New()}
	instances := []*Service{k.service(lenient), k.service(lenient)}
	compare := func() {
		t.Helper()
		if n := k.count(`
			select count(*) from (
				select tenant_id, date_trunc('day', created_at, 'UTC') as day, name, count(*), coalesce(sum(amount), 0) as sum
				from (select *, (convert_from(body, 'UTF8')::jsonb->'data'->>'amount_brl')::numeric * 100 as amount from events) e group by 1, 2, 3) e
			full join (select tenant_id, day, name, sum(total) filter (where member = '') as count, coalesce(sum(total) filter (where member = 'amount_brl'), 0) as sum
				from day_totals group by 1, 2, 3) t using (tenant_id, day, name)
			where (e.count, e.sum) is distinct from (t.count, t.sum)`); n != 0 {
			t.Errorf("%d totals are not those of the events", n)
		}
	}
	var all sync.WaitGroup
	for w := range 6 {
		all.Go(func() {
			for range 10 {
				var batch []event.Sealed
				for range 1 + rand.IntN(5) {
					at := time.Now().Add(-time.Duration(rand.IntN(72)) * time.Hour)
					id := uuid.New()
					batch = append(batch, seal(t, tenants[rand.IntN(2)], id, at, event.SaleRecorded{SaleID: id, Amount: money.BRL(rand.IntN(100000))}), joined(t, tenants[0], at))
				}
				for range 2 {
					if err := instances[w%2].tell(t.Context(), batch); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { defer close(written); all.Wait() }()
	for ended := false; !ended; {
		select {
		case <-written:
			ended = true
		default:
		}
		compare()
	}
	if n := k.count("select count(*) from day_totals"); n == 0 {
		t.Error("there are no totals")
	}
}
