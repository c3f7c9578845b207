package client_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/client"
)

func TestWithoutAReferenceNothingIsSent(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *client.Client) error{
		"a sale": func(ctx context.Context, c *client.Client) error {
			_, err := c.RecordSale(ctx, report(""))
			return err
		},
		"one of a batch": func(ctx context.Context, c *client.Client) error {
			_, err := c.RecordSales(ctx, []client.SaleReport{report("order-1"), report("")})
			return err
		},
		"a refund": func(ctx context.Context, c *client.Client) error {
			_, err := c.RecordRefund(ctx, saleID, client.RefundReport{Amount: 1})
			return err
		},
		"a conversion": func(ctx context.Context, c *client.Client) error {
			_, err := c.RecordConversion(ctx, client.ConversionReport{ReferralCode: "ana", CampaignID: campaignID})
			return err
		},
	} {
		inBubble(t, client.Options{}, nil, func(t *testing.T, s *server, c *client.Client) {
			if err := call(t.Context(), c); err == nil || !strings.Contains(err.Error(), "ExternalRef") {
				t.Errorf("%s without a reference returns %v", name, err)
			}
			if n := len(s.requests()); n != 0 {
				t.Errorf("%s without a reference is sent", name)
			}
		})
	}
}

func TestAMismatchNamesTheMembers(t *testing.T) {
	for header, want := range map[string][]string{
		"":                     nil,
		"amount_brl":           {"amount_brl"},
		"amount_brl, plan_id":  {"amount_brl", "plan_id"},
		"amount_brl,plan_id ,": {"amount_brl", "plan_id"},
	} {
		answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Idempotency-Mismatch", header)
			say(w, 200, `{"idempotent":true}`)
		}
		inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
			ctx := t.Context()
			var got [5]client.Repeat
			var errs [5]error
			sold, err := c.RecordSale(ctx, report("order-1"))
			got[0], errs[0] = sold.Repeat, err
			refunded, err := c.RecordRefund(ctx, saleID, client.RefundReport{Amount: 1, ExternalRef: "return-1"})
			got[1], errs[1] = refunded.Repeat, err
			converted, err := c.RecordConversion(ctx, client.ConversionReport{ExternalRef: "lead-1"})
			got[2], errs[2] = converted.Repeat, err
			partner, err := c.CreatePartner(ctx, client.NewPartner{ExternalRef: "p-1"})
			got[3], errs[3] = partner.Repeat, err
			goal, err := c.CreateGoal(ctx, client.NewGoal{ExternalRef: "g-1"})
			got[4], errs[4] = goal.Repeat, err
			for i := range got {
				if errs[i] != nil || !got[i].Idempotent || !slices.Equal(got[i].Mismatch, want) {
					t.Errorf("%q is read as %+v, %v", header, got[i], errs[i])
				}
			}
		})
	}
}

func TestEverySaleOfABatchHasAResultOfItsOwn(t *testing.T) {
	const results = `{"results":[` +
		`{"status":201,"sale_id":"019f60bb-3400-78de-80b3-c47f112c5974","commission_id":"019f60bb-3400-708f-8271-887ce94707da","commission_amount_brl":32.42,"idempotent":false},` +
		`{"status":200,"sale_id":"019f60ba-3400-7d1f-9c41-55aa6d0c7e21","commission_id":"019f60ba-3400-7b77-a1b5-0f6b3f4de0c9","commission_amount_brl":10.00,"idempotent":true,"idempotency_mismatch":["amount_brl","plan_id"]},` +
		`{"status":400,"code":"invalid_body","message":"1 field is not valid","details":[{"path":"/amount_brl","code":"too_many_decimals","message":"at most 2 decimals"}]},` +
		`{"status":503,"code":"unavailable","message":"repeat the same call later"}]}`
	answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("X-Request-Id", "req-5")
		say(w, 200, results)
	}
	inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
		got, err := c.RecordSales(t.Context(), []client.SaleReport{report("a"), report("b"), report("c"), report("d")})
		if err != nil || len(got) != 4 {
			t.Fatalf("it is answered %+v, %v", got, err)
		}
		if r := got[0]; r.Refusal != nil || r.SaleID != saleID || r.CommissionAmount != 3242 || r.Idempotent || r.Mismatch != nil {
			t.Errorf("the first is %+v", r)
		}
		if r := got[1]; r.Refusal != nil || r.CommissionAmount != 1000 || !r.Idempotent || fmt.Sprint(r.Mismatch) != "[amount_brl plan_id]" {
			t.Errorf("the second is %+v", r)
		}
		if r := got[2]; r.Refusal == nil || r.Refusal.Temporary() || r.Refusal.Error() != "400 invalid_body: 1 field is not valid: /amount_brl at most 2 decimals (request req-5)" {
			t.Errorf("the third is %+v", r)
		}
		if r := got[3]; r.Refusal == nil || !r.Refusal.Temporary() || r.Refusal.Code != "unavailable" {
			t.Errorf("the fourth is %+v", r)
		}
		sent := s.requests()[0]
		if sent.what != "POST /api/v1/sales/batch" || !strings.HasPrefix(sent.body, `{"sales":[{"referral_code":"ana"`) || strings.Count(sent.body, "external_ref") != 4 {
			t.Errorf("it sends %s %s", sent.what, sent.body)
		}
	})
}

func TestABatchHasAsManyResultsAsSales(t *testing.T) {
	for _, body := range []string{`{}`, `{"results":[]}`, `{"results":[{"status":201}]}`, `{"results":[{"status":201},{"status":201},{"status":201}]}`} {
		answer := func(w http.ResponseWriter, _ *http.Request, _ int) { say(w, 200, body) }
		inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
			if got, err := c.RecordSales(t.Context(), []client.SaleReport{report("a"), report("b")}); err == nil {
				t.Errorf("%s is read as %+v", body, got)
			}
		})
	}
}

func TestABatchHasOneToAThousandSales(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request, _ int) {
		say(w, 200, `{"results":[`+strings.TrimSuffix(strings.Repeat(`{"status":201},`, 1000), ",")+`]}`)
	}
	for n, sent := range map[int]int{0: 0, 1000: 1, 1001: 0} {
		inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
			results, err := c.RecordSales(t.Context(), slices.Repeat([]client.SaleReport{report("a")}, n))
			if (err == nil) != (sent == 1) || len(results) != n*sent || len(s.requests()) != sent {
				t.Errorf("a batch of %d has %d results, %v", n, len(results), err)
			}
		})
	}
}
