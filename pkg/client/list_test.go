package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"partilha.dev/pkg/client"
)

// threePages answers a list of five goals, two a page.
func threePages(w http.ResponseWriter, r *http.Request, _ int) {
	switch r.URL.Query().Get("cursor") {
	case "":
		say(w, 200, `{"data":[{"name":"1"},{"name":"2"}],"next_cursor":"a+/="}`)
	case "a+/=":
		say(w, 200, `{"data":[{"name":"3"},{"name":"4"}],"next_cursor":"b"}`)
	default:
		say(w, 200, `{"data":[{"name":"5"}],"next_cursor":null}`)
	}
}

func names(t *testing.T, c *client.Client, until string) (found []string) {
	t.Helper()
	for goal, err := range c.ListGoals(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, goal.Name)
		if goal.Name == until {
			break
		}
	}
	return found
}

func TestAListGoesOnToItsLastPage(t *testing.T) {
	inBubble(t, client.Options{}, threePages, func(t *testing.T, s *server, c *client.Client) {
		if got := names(t, c, ""); !slices.Equal(got, []string{"1", "2", "3", "4", "5"}) {
			t.Errorf("it yields %v", got)
		}
		var asked []string
		for _, r := range s.requests() {
			asked = append(asked, r.what)
		}
		want := []string{"GET /api/v1/goals?limit=100", "GET /api/v1/goals?cursor=a%2B%2F%3D&limit=100", "GET /api/v1/goals?cursor=b&limit=100"}
		if !slices.Equal(asked, want) {
			t.Errorf("it asks for %v", asked)
		}
	})
}

func TestAListThatIsLeftFetchesNoMore(t *testing.T) {
	for until, want := range map[string]int{"1": 1, "2": 1, "3": 2, "5": 3} {
		inBubble(t, client.Options{}, threePages, func(t *testing.T, s *server, c *client.Client) {
			if got := names(t, c, until); got[len(got)-1] != until {
				t.Errorf("it yields %v", got)
			}
			if n := len(s.requests()); n != want {
				t.Errorf("left at row %s it has fetched %d pages, want %d", until, n, want)
			}
		})
	}
}

func TestAListCanBeRangedOverAgain(t *testing.T) {
	inBubble(t, client.Options{}, threePages, func(t *testing.T, s *server, c *client.Client) {
		goals := c.ListGoals(t.Context())
		for range 2 {
			n := 0
			for range goals {
				n++
			}
			if n != 5 {
				t.Errorf("it yields %d rows, want 5", n)
			}
		}
	})
}

func TestAnErrorEndsAList(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request, nth int) {
		if nth > 1 {
			say(w, 400, refusal("invalid_parameter", "cursor: no"))
			return
		}
		threePages(w, r, nth)
	}
	inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
		var seen []string
		for goal, err := range c.ListGoals(t.Context()) {
			var refused *client.Error
			if err != nil && (!errors.As(err, &refused) || refused.Code != "invalid_parameter") {
				t.Errorf("the error is %v", err)
			}
			seen = append(seen, fmt.Sprint(goal.Name, err != nil))
		}
		if !slices.Equal(seen, []string{"1false", "2false", "true"}) {
			t.Errorf("it yields %v", seen)
		}
	})
}

func TestFiltersNarrowWhatIsAskedFor(t *testing.T) {
	at := time.Date(2026, 7, 1, 0, 0, 0, 500, time.FixedZone("", -3*3600))
	for want, walk := range map[string]func(ctx context.Context, c *client.Client) error{
		"/api/v1/sales?campaign_id=019f60b5-3400-76b2-83c0-d5f35d1b11f9&external_ref=a+%26b&limit=100&partner_id=019f60b3-3400-75c6-82e0-91b8c0565f1b" +
			"&sold_from=2026-07-01T03%3A00%3A00.0000005Z&sold_to=2026-07-02T03%3A00%3A00.0000005Z": func(ctx context.Context, c *client.Client) error {
			return last(c.ListSales(ctx, client.SaleFilter{
				ExternalRef: "a &b", PartnerID: partnerID, CampaignID: campaignID, SoldFrom: at, SoldTo: at.AddDate(0, 0, 1),
			}))
		},
		"/api/v1/sales?limit=100": func(ctx context.Context, c *client.Client) error { return last(c.ListSales(ctx, client.SaleFilter{})) },
		"/api/v1/conversions?campaign_id=019f60b5-3400-76b2-83c0-d5f35d1b11f9&external_ref=x&limit=100&partner_id=019f60b3-3400-75c6-82e0-91b8c0565f1b&type=trial": func(ctx context.Context, c *client.Client) error {
			return last(c.ListConversions(ctx, client.ConversionFilter{ExternalRef: "x", PartnerID: partnerID, CampaignID: campaignID, Type: "trial"}))
		},
		"/api/v1/partners?email=a%2Bb%40x&limit=100&referral_code=ana&status=active": func(ctx context.Context, c *client.Client) error {
			return last(c.ListPartners(ctx, client.PartnerFilter{ReferralCode: "ana", Email: "a+b@x", Status: "active"}))
		},
		"/api/v1/commissions?campaign_id=019f60b5-3400-76b2-83c0-d5f35d1b11f9&created_from=2026-07-01T03%3A00%3A00.0000005Z" +
			"&created_to=2026-07-02T03%3A00%3A00.0000005Z&limit=100&partner_id=019f60b3-3400-75c6-82e0-91b8c0565f1b" +
			"&source_sale_id=019f60bb-3400-78de-80b3-c47f112c5974&status=paid": func(ctx context.Context, c *client.Client) error {
			return last(c.ListCommissions(ctx, client.CommissionFilter{
				PartnerID: partnerID, CampaignID: campaignID, Status: "paid", SourceSaleID: saleID, CreatedFrom: at, CreatedTo: at.AddDate(0, 0, 1),
			}))
		},
		"/api/v1/webhook-deliveries?endpoint_id=019f60bb-3400-78de-80b3-c47f112c5974&event=goal.reached&from=2026-07-01T03%3A00%3A00.0000005Z" +
			"&limit=100&status=failed&to=2026-07-02T03%3A00%3A00.0000005Z": func(ctx context.Context, c *client.Client) error {
			return last(c.ListWebhookDeliveries(ctx, client.WebhookDeliveryFilter{
				EndpointID: saleID, Event: "goal.reached", Status: "failed", From: at, To: at.AddDate(0, 0, 1),
			}))
		},
		"/api/v1/goals/019f60bb-3400-78de-80b3-c47f112c5974/progress?limit=100&partner_id=019f60b3-3400-75c6-82e0-91b8c0565f1b" +
			"&period_start=2026-07-01T03%3A00%3A00.0000005Z": func(ctx context.Context, c *client.Client) error {
			return last(c.ListGoalProgress(ctx, saleID, client.ProgressFilter{PartnerID: partnerID, PeriodStart: at}))
		},
	} {
		answer := func(w http.ResponseWriter, _ *http.Request, _ int) { say(w, 200, `{"data":[],"next_cursor":null}`) }
		inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
			if err := walk(t.Context(), c); err != nil {
				t.Error(err)
			}
			if got := s.requests()[0].what; got != "GET "+want {
				t.Errorf("it asks for %s\nwant GET %s", got, want)
			}
		})
	}
}

// last ranges over a list and returns how it ended.
func last[T any](rows func(func(T, error) bool)) (err error) {
	for _, err = range rows {
	}
	return err
}
