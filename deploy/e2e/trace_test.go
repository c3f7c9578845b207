package e2e

import (
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"

func TestATraceGoesFromThePostToTheWebhook(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		export bool
	}{
		{"without an exporter the traceparent is passed on", false},
		{"with an exporter every service tells spans of the same trace", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var env []string
			spans := newCollector(t)
			if row.export {
				env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + spans.url, "OTEL_BSP_SCHEDULE_DELAY=50"}
			}
			p := stage.StartPlatform(t, env...)
			shop := stage.OpenShop(t, p)
			sold := shop.Sell(t, "order-1", "traceparent", "00-"+traceID+"-00f067aa0ba902b7-01")
			stage.Books{Platform: p, Shop: shop}.Settle(t, map[string]stage.Receipt{"order-1": sold})

			for _, place := range []struct{ service, query string }{
				{"sales", "select traceparent from outbox where tenant_id = $1 and name = 'sale.recorded'"},
				{"commissions", "select traceparent from outbox where tenant_id = $1 and name = 'commission.available'"},
				{"webhooks", "select traceparent from events where tenant_id = $1 and name = 'sale.recorded'"},
				{"webhooks", "select traceparent from events where tenant_id = $1 and name = 'commission.available'"},
			} {
				kept := p.Query(t, place.service, place.query, shop.TenantID)
				if len(kept) != 1 || !strings.HasPrefix(kept[0], "00-"+traceID+"-") {
					t.Errorf("%s: %q in %s", place.query, kept, place.service)
				}
			}
			for _, w := range shop.Receiver.Of("commission.available") {
				if parent := w.Header.Get("traceparent"); parent != "" {
					t.Errorf("a webhook carries the traceparent %q", parent)
				}
			}
			if row.export {
				testkit.Eventually(t, stage.Soon, "every service has told spans of the trace", func() bool {
					return slices.Equal(spans.tellers(traceID), slices.Sorted(slices.Values(stage.Services)))
				})
			}
		})
	}
}

func TestATraceBeginsWithACallThatBringsNone(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	stage.Books{Platform: p, Shop: shop}.Settle(t, map[string]stage.Receipt{"order-1": shop.Sell(t, "order-1")})
	traces := map[string]bool{}
	for _, place := range []struct{ service, query string }{
		{"sales", "select traceparent from outbox where tenant_id = $1 and name = 'sale.recorded'"},
		{"commissions", "select traceparent from outbox where tenant_id = $1 and name = 'commission.available'"},
		{"webhooks", "select traceparent from events where tenant_id = $1 and name = 'commission.available'"},
	} {
		kept := p.Query(t, place.service, place.query, shop.TenantID)
		if len(kept) != 1 || !strings.HasPrefix(kept[0], "00-") || !strings.HasSuffix(kept[0], "-00") {
			t.Fatalf("%s: %q in %s", place.query, kept, place.service)
		}
		traces[strings.Split(kept[0], "-")[1]] = true
	}
	if len(traces) != 1 {
		t.Errorf("one sale is told of in the traces %v", traces)
	}
}

// spanCollector is where an OpenTelemetry exporter sends its spans.
type spanCollector struct {
	url string

	mu   sync.Mutex
	told map[string]map[string]bool // services by trace id
}

func newCollector(t testing.TB) *spanCollector {
	c := &spanCollector{told: map[string]map[string]bool{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *spanCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		service := ""
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				id := hex.EncodeToString(span.GetTraceId())
				if c.told[id] == nil {
					c.told[id] = map[string]bool{}
				}
				c.told[id][service] = true
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// tellers are the services that have told spans of a trace, sorted.
func (c *spanCollector) tellers(trace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.told[trace]))
}
