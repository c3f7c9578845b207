package client_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/client"
)

func TestEverySettlementOfABatchHasAResultOfItsOwn(t *testing.T) {
	results := `{"results":[{"status":200,"withdrawal":` + withdrawal + `},` +
		`{"status":200,"withdrawal":` + withdrawal + `,"idempotency_mismatch":["end_to_end_id"]},` +
		`{"status":409,"code":"conflict","message":"end_to_end_id is taken"},` +
		`{"status":503,"code":"unavailable","message":"repeat the same call later"}]}`
	answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("X-Request-Id", "req-5")
		say(w, 200, results)
	}
	inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
		got, err := c.SettleWithdrawals(t.Context(), []client.Settlement{
			{WithdrawalID: saleID, Action: "pay", EndToEndID: "E12345678202607141305abcDEF12345", PaidAt: time.Date(2026, 7, 14, 13, 5, 0, 0, time.UTC)},
			{WithdrawalID: partnerID, Action: "pay"},
			{WithdrawalID: campaignID, Action: "fail", Reason: "no such key", FailureCode: "AC03"},
			{WithdrawalID: saleID, Action: "fail", Reason: "no"},
		})
		if err != nil || len(got) != 4 {
			t.Fatalf("it is answered %+v, %v", got, err)
		}
		if r := got[0]; r.Refusal != nil || r.Mismatch != nil || r.Withdrawal.WithdrawalID == uuid.Nil || r.Withdrawal.Status == "" {
			t.Errorf("the first is %+v", r)
		}
		if r := got[1]; r.Refusal != nil || fmt.Sprint(r.Mismatch) != "[end_to_end_id]" {
			t.Errorf("the second is %+v", r)
		}
		if r := got[2]; r.Refusal == nil || r.Refusal.Temporary() || r.Refusal.Error() != "409 conflict: end_to_end_id is taken (request req-5)" {
			t.Errorf("the third is %+v", r)
		}
		if r := got[3]; r.Refusal == nil || !r.Refusal.Temporary() {
			t.Errorf("the fourth is %+v", r)
		}
		const want = `{"withdrawals":[` +
			`{"withdrawal_id":"019f60bb-3400-78de-80b3-c47f112c5974","action":"pay","end_to_end_id":"E12345678202607141305abcDEF12345","paid_at":"2026-07-14T13:05:00Z"},` +
			`{"withdrawal_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b","action":"pay"},` +
			`{"withdrawal_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","action":"fail","reason":"no such key","failure_code":"AC03"},` +
			`{"withdrawal_id":"019f60bb-3400-78de-80b3-c47f112c5974","action":"fail","reason":"no"}]}`
		if sent := s.requests()[0]; sent.what != "POST /api/v1/withdrawals/batch" || sent.body != want {
			t.Errorf("it sends %s %s", sent.what, sent.body)
		}
	})
}

func TestABatchHasOneToAThousandSettlementsAndAsManyResults(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
		say(w, 200, `{"results":[`+strings.TrimSuffix(strings.Repeat(`{"status":200},`, 1000), ",")+`]}`)
	}
	for n, row := range map[int]struct {
		sent int
		good bool
	}{0: {0, false}, 999: {1, false}, 1000: {1, true}, 1001: {0, false}} {
		inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
			_, err := c.SettleWithdrawals(t.Context(), slices.Repeat([]client.Settlement{{WithdrawalID: saleID, Action: "pay"}}, n))
			if (err == nil) != row.good || len(s.requests()) != row.sent {
				t.Errorf("a batch of %d is sent %d times: %v", n, len(s.requests()), err)
			}
		})
	}
}
