package sales

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/testkit"
)

func TestARefundIsToldExactlyAsTheContractSays(t *testing.T) {
	t.Parallel()
	f := start(t, testkit.NATS(t).URL())
	sold := f.post("/api/v1/sales", f.sale("order-1", "sold_at", `"2026-03-01T12:00:00.25-03:00"`)).want(201)
	sale, refunds := sold.text("sale_id"), "/api/v1/sales/"+sold.text("sale_id")+"/refunds"
	f.post(refunds, refundOf("return-1", "50.25")).want(201).shows("commission_reversed_brl", "2.52")
	body := refundOf("return-2", "30", "reason", `"private"`)
	made := f.send("POST", refunds, body, "Authorization", "Bearer "+f.key, "traceparent", parent).want(201)
	shown := f.get(refunds + "?limit=1").want(200).object()["data"].([]any)[0].(map[string]any)
	message := f.told("the refund", func(m *jetstream.RawStreamMsg) bool {
		return m.Subject == "sale.refunded" && strings.Contains(string(m.Data), made.text("refund_id"))
	})
	id := derived("sale.refunded", made.text("refund_id"))
	want := golden(t, "sale.refunded", "event_id", id, "created_at", shown["created_at"].(string), "tenant_id", f.tenant, "refund_id", made.text("refund_id"),
		"sale_id", sale, "partner_id", f.partner, "campaign_id", f.campaign, "commission_id", sold.text("commission_id"))
	if string(message.Data) != want {
		t.Errorf("told\n%s\nwant\n%s", message.Data, want)
	}
	if got := message.Header.Get(nats.MsgIdHdr); got != id {
		t.Errorf("Nats-Msg-Id is %s, want %s", got, id)
	}
	if got := message.Header.Get("traceparent"); got != parent {
		t.Errorf("traceparent is %s, want %s", got, parent)
	}
	f.post(refunds, body).want(200)
	f.post(refunds, refundOf("too much", "100")).refused(422, "rule_violated")
	f.post(refunds, refundOf("return-3", "1")).want(201)
	testkit.Eventually(t, soon, "the next refund is told", func() bool { return len(f.stream()) == 5 }) // the partner, the sale, three refunds and no repeat
}

func TestARefundItsSaleAndItsEventChangeInOneTransaction(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	sale, refunds := f.sell("order-1")
	exec := func(statement string) {
		t.Helper()
		if _, err := f.deps.Pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec(`alter table outbox add constraint speechless check (name <> 'sale.refunded')`)
	f.recordsNothing(func() { f.post(refunds, refundOf("return-1", "1")).refused(500, "internal_error") })
	exec(`alter table outbox drop constraint speechless`)
	f.post(refunds, refundOf("return-1", "1")).want(201).shows("idempotent", "false")
	f.get("/api/v1/sales/"+sale).want(200).shows("refunded_total_brl", "1.00")
	together := `refunds r join sales s on s.sale_id = r.sale_id and s.xmin = r.xmin
		join outbox o on o.xmin = r.xmin and convert_from(o.body, 'UTF8')::jsonb #>> '{data,refund_id}' = r.refund_id::text
		join outbox_pending p on p.event_id = o.event_id and p.xmin = r.xmin`
	if n := f.rows(together); n != 1 {
		t.Errorf("%d refunds were committed together with the sale and the event, want 1", n)
	}
}
