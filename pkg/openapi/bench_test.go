package openapi_test

import "testing"

// A sale as payment systems send it: 8 members, about 340 bytes.
var usualSale = []byte(`{"referral_code":"ana-2026","campaign_id":"0197f0a2-1111-7abc-8def-0123456789ab",` +
	`"plan_id":"0197f0a2-2222-7abc-8def-0123456789ab","amount_brl":199.90,"external_ref":"order-2026-000123456",` +
	`"sold_at":"2026-03-01T12:00:00.123-03:00","customer_ref":"cliente@example.com","notes":"paid by card in 3 instalments"}`)

func BenchmarkDecode(b *testing.B) {
	body := shopBody(b, "POST", "/api/v1/sales")
	b.SetBytes(int64(len(usualSale)))
	b.ReportAllocs()
	for b.Loop() {
		var in newSale
		if err := body.Decode(usualSale, &in); err != nil {
			b.Fatal(err)
		}
	}
}
