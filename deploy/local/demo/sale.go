package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
)

// patience is how long the demo waits for any one thing to happen.
const patience = 15 * time.Second

// untilKnown tries again while the other services have not heard of the tenant's key,
// which takes them a fraction of a second.
func untilKnown(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return poll(ctx, 20*time.Millisecond, try)
}

// poll tries until that succeeds, or returns the last failure when ctx ends.
func poll(ctx context.Context, every time.Duration, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(every):
		}
	}
}

// Sell reports one sale over HTTP, waits until everything that follows from it has
// happened, and writes a line for each step with the time since the request. Without
// natsURL it does not look at NATS.
func (t *Tenant) Sell(ctx context.Context, out io.Writer, base, natsURL string, receiver *Receiver) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var published <-chan arrival
	if natsURL != "" {
		arrivals, stop, err := listenFor(natsURL, "sale.recorded")
		if err != nil {
			return err
		}
		defer stop()
		published = arrivals
	}
	own := client{base, t.Key}
	before, err := t.progress(ctx, own)
	if err != nil {
		return err
	}

	start := time.Now()
	step := func(at time.Time, format string, args ...any) {
		fmt.Fprintf(out, "  %7.1f ms  %s\n", float64(at.Sub(start).Microseconds())/1000, fmt.Sprintf(format, args...))
	}
	sale := object{
		"referral_code": t.ReferralCode, "campaign_id": t.CampaignID, "plan_id": t.PlanID,
		"amount_brl": json.Number("250.00"), "external_ref": fmt.Sprintf("demo-%d", start.UnixNano()),
	}
	var receipt struct {
		SaleID           string      `json:"sale_id"`
		CommissionID     string      `json:"commission_id"`
		CommissionAmount json.Number `json:"commission_amount_brl"`
	}
	fmt.Fprintln(out, "One sale of R$ 250.00, all the way:")
	if err := own.call(ctx, "POST", "/api/v1/sales", sale, &receipt); err != nil {
		return err
	}
	step(time.Now(), "201 Created       sale %s, commission R$ %s", receipt.SaleID, receipt.CommissionAmount)

	if published != nil {
		at, err := awaitPublished(ctx, published, receipt.SaleID)
		if err != nil {
			return err
		}
		step(at, "sale.recorded     published on NATS")
	}

	if err := poll(ctx, time.Millisecond, func() error {
		return own.call(ctx, "GET", "/api/v1/commissions/"+receipt.CommissionID, nil, nil)
	}); err != nil {
		return fmt.Errorf("wait for the commission: %w", err)
	}
	step(time.Now(), "commission        %s can be read", receipt.CommissionID)

	var now int
	if err := poll(ctx, time.Millisecond, func() (err error) {
		if now, err = t.progress(ctx, own); err == nil && now <= before {
			err = errors.New("the sale is not counted yet")
		}
		return err
	}); err != nil {
		return fmt.Errorf("wait for the goal: %w", err)
	}
	step(time.Now(), "goal              %d of %d sales this month", now, goalTarget)

	heard, err := receiver.await(ctx, receipt.SaleID)
	if err != nil {
		return err
	}
	step(heard.At, "webhook           %s received, signature verified (%s)", heard.Event, heard.EventID)
	return nil
}

// progress is how many sales of this month the demo goal has counted.
func (t *Tenant) progress(ctx context.Context, own client) (int, error) {
	var answer struct {
		Data []struct {
			Progress int `json:"progress"`
		} `json:"data"`
	}
	err := own.call(ctx, "GET", "/api/v1/goals/"+t.GoalID+"/progress?partner_id="+t.PartnerID, nil, &answer)
	if err != nil || len(answer.Data) == 0 {
		return 0, err
	}
	return answer.Data[0].Progress, nil
}

type arrival struct {
	body []byte
	at   time.Time
}

// listenFor notes when messages of a subject pass by.
func listenFor(natsURL, subject string) (<-chan arrival, func(), error) {
	conn, err := nats.Connect(natsURL)
	if err != nil {
		return nil, nil, fmt.Errorf("listen on NATS: %w", err)
	}
	arrivals := make(chan arrival, 256)
	_, err = conn.Subscribe(subject, func(m *nats.Msg) {
		select {
		case arrivals <- arrival{m.Data, time.Now()}:
		default:
		}
	})
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("listen on NATS: %w", err)
	}
	return arrivals, conn.Close, nil
}

func awaitPublished(ctx context.Context, arrivals <-chan arrival, saleID string) (time.Time, error) {
	for {
		select {
		case a := <-arrivals:
			var e struct {
				Data struct {
					SaleID string `json:"sale_id"`
				} `json:"data"`
			}
			if json.Unmarshal(a.body, &e) == nil && e.Data.SaleID == saleID {
				return a.at, nil
			}
		case <-ctx.Done():
			return time.Time{}, errors.New("sale.recorded was not published in time")
		}
	}
}

// await returns the webhook that tells of the sale.
func (r *Receiver) await(ctx context.Context, saleID string) (Webhook, error) {
	for {
		select {
		case w := <-r.heard:
			if w.SaleID != saleID {
				continue
			}
			if !w.Verified {
				return w, errors.New("a webhook came with a wrong signature")
			}
			return w, nil
		case <-ctx.Done():
			return Webhook{}, errors.New("no webhook came in time")
		}
	}
}
