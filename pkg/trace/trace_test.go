package trace_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"partilha.dev/pkg/trace"
)

const incoming = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestWithoutAnExporterATraceparentIsPassedOnUnchanged(t *testing.T) {
	for _, traceparent := range []string{incoming, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"} {
		ctx, span := trace.Start(trace.Join(t.Context(), traceparent), "handle")
		defer span.End()
		if got := trace.Parent(ctx); got != traceparent {
			t.Errorf("%s became %q", traceparent, got)
		}
		if span.IsRecording() {
			t.Error("something is recorded")
		}
	}
}

func TestWithoutATraceOneBeginsThatNobodyRecords(t *testing.T) {
	seen := map[string]bool{}
	for _, traceparent := range []string{"", "", "not a traceparent"} {
		ctx, span := trace.Start(trace.Join(t.Context(), traceparent), "handle")
		defer span.End()
		begun := oteltrace.SpanContextFromContext(trace.Join(context.Background(), trace.Parent(ctx)))
		if !begun.IsValid() || begun.IsSampled() || span.IsRecording() {
			t.Errorf("after %q it carries %q", traceparent, trace.Parent(ctx))
		}
		if seen[begun.TraceID().String()] || seen[begun.SpanID().String()] {
			t.Errorf("%s came before", trace.Parent(ctx))
		}
		seen[begun.TraceID().String()], seen[begun.SpanID().String()] = true, true

		below, inner := trace.Start(ctx, "look")
		defer inner.End()
		if got := trace.Parent(below); got != trace.Parent(ctx) {
			t.Errorf("%s becomes %s within", trace.Parent(ctx), got)
		}
	}
}

func TestAMalformedTraceparentIsIgnored(t *testing.T) {
	for name, traceparent := range map[string]string{
		"words":          "not a traceparent",
		"no flags":       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
		"a short id":     "00-0af7651916cd43dd8448eb211c8031-b7ad6b7169203331-01",
		"a trace of 0":   "00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"a span of 0":    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"upper case":     "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01",
		"something else": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
		"no version":     "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		t.Run(name, func(t *testing.T) {
			if got := trace.Parent(trace.Join(t.Context(), traceparent)); got != "" {
				t.Errorf("a new context carries %q", got)
			}
			known := trace.Join(t.Context(), incoming)
			if got := trace.Parent(trace.Join(known, traceparent)); got != incoming {
				t.Errorf("a context with a trace carries %q", got)
			}
		})
	}
}

func TestASpanContinuesTheTraceThatCameIn(t *testing.T) {
	recorded := record(t)
	ctx, span := trace.Start(trace.Join(t.Context(), incoming), "earn")
	outgoing := trace.Parent(ctx)
	span.End()

	spans := recorded.GetSpans()
	if len(spans) != 1 || spans[0].Name != "earn" {
		t.Fatalf("recorded %v", spans)
	}
	child := spans[0]
	if got := child.SpanContext.TraceID().String(); got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the span is of the trace %s", got)
	}
	if got := child.Parent.SpanID().String(); got != "b7ad6b7169203331" || !child.Parent.IsRemote() {
		t.Errorf("the span is below %s", got)
	}
	next := oteltrace.SpanContextFromContext(trace.Join(t.Context(), outgoing))
	if next.TraceID() != child.SpanContext.TraceID() || next.SpanID() != child.SpanContext.SpanID() || !next.IsSampled() {
		t.Errorf("what it causes carries %s", outgoing)
	}
}

func TestASpanWithoutATraceStartsOne(t *testing.T) {
	record(t)
	ctx, span := trace.Start(t.Context(), "record")
	defer span.End()
	if got := oteltrace.SpanContextFromContext(trace.Join(context.Background(), trace.Parent(ctx))); !got.IsValid() {
		t.Errorf("it carries %q", trace.Parent(ctx))
	}
}

func TestNothingIsExportedUnlessTheEnvironmentSaysWhereTo(t *testing.T) {
	if trace.Enabled() {
		t.Fatal("the environment of the tests names an exporter")
	}
	stop, err := trace.Export(t.Context(), "sales")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(recordNothing)
	_, span := trace.Start(t.Context(), "record")
	if span.IsRecording() {
		t.Error("something is recorded")
	}
	span.End()
	if err := stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStoppingSendsWhatWasRecorded(t *testing.T) {
	var calls atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" {
			calls.Add(1)
		}
		w.WriteHeader(http.StatusOK)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	stop, err := trace.Export(t.Context(), "sales")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(recordNothing)
	_, span := trace.Start(t.Context(), "record")
	span.End()
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 1 {
		t.Errorf("the collector was called %d times", calls.Load())
	}
}

// record keeps the spans of one test.
func record(t *testing.T) *tracetest.InMemoryExporter {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	t.Cleanup(recordNothing)
	return spans
}

func recordNothing() { otel.SetTracerProvider(noop.NewTracerProvider()) }
