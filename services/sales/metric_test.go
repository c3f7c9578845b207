package sales

import (
	"context"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"partilha.dev/pkg/testkit"
)

// It is not parallel: other tests report sales too.
func TestReportsAreCountedByWhatBecameOfThem(t *testing.T) {
	f := start(t, nowhere)
	all := map[[2]string]float64{}
	for _, kind := range []string{"sale", "refund", "conversion"} {
		for _, result := range []string{"recorded", "repeated", "refused", "failed"} {
			all[[2]string{kind, result}] = 0
		}
	}
	counted := func() map[[2]string]float64 {
		counts := maps.Clone(all)
		for of := range counts {
			counts[of] = testkit.Metric(t, "partilha_sales_reports_total", "kind", of[0], "result", of[1])
		}
		return counts
	}
	before := counted()
	counts := func(what, kind string, recorded, repeated, refused, failed float64) {
		t.Helper()
		now := counted()
		before[[2]string{kind, "recorded"}] += recorded
		before[[2]string{kind, "repeated"}] += repeated
		before[[2]string{kind, "refused"}] += refused
		before[[2]string{kind, "failed"}] += failed
		if !maps.Equal(now, before) {
			t.Errorf("after %s the counts are %v, want %v", what, now, before)
		}
		before = now
	}

	_, refunds := f.sell("one")
	counts("a sale", "sale", 1, 0, 0, 0)
	f.post("/api/v1/sales", f.sale("one")).want(200)
	counts("a repeat", "sale", 0, 1, 0, 0)
	f.post("/api/v1/sales", f.sale("two", "amount_brl", `"much"`)).want(400)
	f.post("/api/v1/sales", f.sale("two", "referral_code", `"nobody"`))
	counts("two that are wrong", "sale", 0, 0, 2, 0)
	f.batch(f.sale("three"), f.sale("four"), f.sale("one"), f.sale("five", "amount_brl", "-1"))
	counts("a batch", "sale", 2, 1, 1, 0)
	f.post(refunds, refundOf("back", "50")).want(201)
	f.post(refunds, refundOf("back", "50")).want(200)
	f.post(refunds, refundOf("more", "500")).want(422)
	counts("three refunds", "refund", 1, 1, 1, 0)
	f.post("/api/v1/conversions", f.conversion("lead")).want(201)
	f.post("/api/v1/conversions", f.conversion("lead")).want(200)
	counts("a conversion and its repeat", "conversion", 1, 1, 0, 0)

	gone, leave := context.WithCancel(t.Context())
	leave()
	impatient := httptest.NewRequestWithContext(gone, "POST", "/api/v1/sales", strings.NewReader(f.sale("late")))
	impatient.Header.Set("Authorization", "Bearer "+f.key)
	f.service.Handler().ServeHTTP(httptest.NewRecorder(), impatient)
	counts("a caller who has left", "sale", 0, 0, 0, 0)

	if _, err := f.deps.Pool.Exec(t.Context(), "alter table sales rename to elsewhere"); err != nil {
		t.Fatal(err)
	}
	f.post("/api/v1/sales", f.sale("six")).want(500)
	counts("a sale that the database cannot take", "sale", 0, 0, 0, 1)
	f.batch(f.sale("seven"), f.sale("eight"))
	counts("a batch that it cannot take", "sale", 0, 0, 0, 2)
}
