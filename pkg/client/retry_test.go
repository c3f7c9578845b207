package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/client"
	"partilha.dev/pkg/money"
)

// failures are ways in which an attempt fails after Partilha may have done what it asks.
var failures = map[string]func(w http.ResponseWriter, r *http.Request){
	"a connection torn before the answer": func(w http.ResponseWriter, _ *http.Request) { tear(w, "") },
	"a connection torn within the head":   func(w http.ResponseWriter, _ *http.Request) { tear(w, "HTTP/1.1 201 Cre") },
	"a connection torn within the body": func(w http.ResponseWriter, _ *http.Request) {
		tear(w, "HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{")
	},
	"silence":                               func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"429":                                   func(w http.ResponseWriter, _ *http.Request) { say(w, 429, refusal("rate_limited", "wait")) },
	"502 from a proxy":                      func(w http.ResponseWriter, _ *http.Request) { say(w, 502, "<html>") },
	"503":                                   func(w http.ResponseWriter, _ *http.Request) { say(w, 503, refusal("unavailable", "later")) },
	"504 from a proxy that broke off again": func(w http.ResponseWriter, _ *http.Request) { tear(w, "HTTP/1.1 504 \r\nContent-Length: 9\r\n\r\n{") },
}

func TestACallThatDoesNoHarmTwiceIsRepeatedWithTheVerySameBytes(t *testing.T) {
	for name, row := range map[string]struct {
		call   func(ctx context.Context, c *client.Client) error
		answer string
		marks  string // is part of every request's body
	}{
		"a sale": {func(ctx context.Context, c *client.Client) error {
			_, err := c.RecordSale(ctx, report("order-1"))
			return err
		}, receipt, `"external_ref":"order-1"`},
		"a batch": {func(ctx context.Context, c *client.Client) error {
			_, err := c.RecordSales(ctx, []client.SaleReport{report("order-1"), report("order-2")})
			return err
		}, `{"results":[{"status":201},{"status":201}]}`, `"external_ref":"order-2"`},
		"a batch of settlements": {func(ctx context.Context, c *client.Client) error {
			_, err := c.SettleWithdrawals(ctx, []client.Settlement{{WithdrawalID: saleID, Action: "pay"}})
			return err
		}, `{"results":[{"status":200}]}`, `"action":"pay"`},
		"a refund": {func(ctx context.Context, c *client.Client) error {
			_, err := c.RecordRefund(ctx, saleID, client.RefundReport{Amount: 100, ExternalRef: "return-1"})
			return err
		}, `{}`, `"external_ref":"return-1"`},
		"a conversion": {func(ctx context.Context, c *client.Client) error {
			_, err := c.RecordConversion(ctx, client.ConversionReport{ReferralCode: "ana", CampaignID: campaignID, ExternalRef: "lead-1"})
			return err
		}, `{}`, `"external_ref":"lead-1"`},
		"a partner with a reference": {func(ctx context.Context, c *client.Client) error {
			_, err := c.CreatePartner(ctx, client.NewPartner{Name: "Ana", ReferralCode: "ana", ExternalRef: "p-1"})
			return err
		}, `{}`, `"external_ref":"p-1"`},
		"a plan with a reference": {func(ctx context.Context, c *client.Client) error {
			_, err := c.CreatePlan(ctx, campaignID, client.NewPlan{Name: "Dez", CommissionPct: money.Pct(100000), ExternalRef: "plan-1"})
			return err
		}, `{}`, `"external_ref":"plan-1"`},
		"a link": {func(ctx context.Context, c *client.Client) error {
			return c.LinkPartner(ctx, campaignID, partnerID)
		}, ``, ``},
		"a read": {func(ctx context.Context, c *client.Client) error {
			_, err := c.GetSale(ctx, saleID)
			return err
		}, `{}`, ``},
		"a list": {func(ctx context.Context, c *client.Client) (err error) {
			for _, err = range c.ListSales(ctx, client.SaleFilter{}) {
			}
			return err
		}, `{"data":[],"next_cursor":null}`, ``},
	} {
		for failure, fail := range failures {
			t.Run(name+" after "+failure, func(t *testing.T) {
				answer := func(w http.ResponseWriter, r *http.Request, nth int) {
					if nth < 3 {
						fail(w, r)
						return
					}
					say(w, 200, row.answer)
				}
				inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
					if err := row.call(t.Context(), c); err != nil {
						t.Fatal(err)
					}
					heard := s.requests()
					if len(heard) != 3 {
						t.Fatalf("it was sent %d times, want 3", len(heard))
					}
					for _, r := range heard {
						if r.what != heard[0].what || r.body != heard[0].body || !strings.Contains(r.body, row.marks) {
							t.Errorf("sent %s %s, and first %s %s", r.what, r.body, heard[0].what, heard[0].body)
						}
					}
				})
			})
		}
	}
}

// harmful are calls that must not be made twice by anybody but their caller.
var harmful = map[string]func(ctx context.Context, c *client.Client) error{
	"a new key": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateAPIKey(ctx, client.NewAPIKey{Name: "checkout"})
		return err
	},
	"a revocation": func(ctx context.Context, c *client.Client) error { return c.RevokeAPIKey(ctx, saleID) },
	"a new endpoint": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateWebhookEndpoint(ctx, client.NewWebhookEndpoint{URL: "https://example.com", Events: []string{"*"}})
		return err
	},
	"a deletion": func(ctx context.Context, c *client.Client) error { return c.DeleteWebhookEndpoint(ctx, saleID) },
	"an update": func(ctx context.Context, c *client.Client) error {
		_, err := c.UpdatePartner(ctx, partnerID, client.PartnerUpdate{Status: "banned"})
		return err
	},
	"a partner without a reference": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreatePartner(ctx, client.NewPartner{Name: "Ana", ReferralCode: "ana"})
		return err
	},
	"a campaign without a reference": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateCampaign(ctx, client.NewCampaign{Name: "Verão"})
		return err
	},
	"a plan without a reference": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreatePlan(ctx, campaignID, client.NewPlan{Name: "Dez"})
		return err
	},
	"a goal without a reference": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateGoal(ctx, client.NewGoal{Name: "Dez vendas"})
		return err
	},
}

func TestWhatMightDoHarmTwiceIsSentOnce(t *testing.T) {
	for name, call := range harmful {
		for failure, fail := range failures {
			t.Run(name+" after "+failure, func(t *testing.T) {
				answer := func(w http.ResponseWriter, r *http.Request, _ int) { fail(w, r) }
				inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
					if err := call(t.Context(), c); err == nil {
						t.Error("no error is returned")
					}
					if n := len(s.requests()); n != 1 {
						t.Errorf("it was sent %d times, want once", n)
					}
				})
			})
		}
	}
}

func TestWhatFoundNoConnectionIsSentAgain(t *testing.T) {
	for name, call := range harmful {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, _ *http.Request, _ int) { say(w, 200, `{}`) }
			inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
				s.refuse = 2
				if err := call(t.Context(), c); err != nil {
					t.Error(err)
				}
				if n := len(s.requests()); n != 1 {
					t.Errorf("it arrived %d times, want once", n)
				}
			})
		})
	}
}

func TestAnAnswerThatNoRepeatCanChangeIsFinal(t *testing.T) {
	for _, status := range []int{302, 307, 400, 401, 403, 404, 409, 413, 415, 422, 500} {
		answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Retry-After", "1")
			say(w, status, refusal("some_code", "no"))
		}
		inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
			_, err := c.RecordSale(t.Context(), report("order-1"))
			var refused *client.Error
			if !errors.As(err, &refused) || refused.Status != status || refused.Temporary() {
				t.Errorf("%d is returned as %v", status, err)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("after %d it is sent %d times, want once", status, n)
			}
		})
	}
}

func TestPausesDoubleAndAttemptsEnd(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request, _ int) { say(w, 503, refusal("unavailable", "later")) }
	inBubble(t, client.Options{Attempts: 8}, answer, func(t *testing.T, s *server, c *client.Client) {
		_, err := c.RecordSale(t.Context(), report("order-1"))
		var refused *client.Error
		if !errors.As(err, &refused) || !refused.Temporary() || refused.RequestID != "req-1" {
			t.Errorf("after the last attempt the error is %v", err)
		}
		heard := s.requests()
		if len(heard) != 8 {
			t.Fatalf("it was sent %d times, want 8", len(heard))
		}
		for i, most := range []time.Duration{250, 500, 1000, 2000, 4000, 8000, 8000} {
			most *= time.Millisecond
			if gap := heard[i+1].at.Sub(heard[i].at); gap < most/2 || gap > most {
				t.Errorf("pause %d takes %s, want %s to %s", i+1, gap, most/2, most)
			}
		}
	})
	for attempts, want := range map[int]int{0: 5, 1: 1, 2: 2} {
		inBubble(t, client.Options{Attempts: attempts}, answer, func(t *testing.T, s *server, c *client.Client) {
			c.GetSale(t.Context(), saleID)
			if n := len(s.requests()); n != want {
				t.Errorf("with Attempts %d it is sent %d times, want %d", attempts, n, want)
			}
		})
	}
}

func TestARepeatedReportTellsThatItIsOne(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request, nth int) {
		if nth == 1 {
			tear(w, "") // it was recorded, and the answer was lost
			return
		}
		w.Header().Set("Idempotency-Mismatch", "amount_brl, plan_id")
		say(w, 200, strings.Replace(receipt, "false", "true", 1))
	}
	inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
		sold, err := c.RecordSale(t.Context(), report("order-1"))
		if err != nil || !sold.Idempotent || strings.Join(sold.Mismatch, "|") != "amount_brl|plan_id" || sold.SaleID != saleID {
			t.Errorf("it is answered %+v, %v", sold, err)
		}
	})
}
