// Package trace carries one trace from the request that reports a sale to the
// webhook that tells of it.
//
// Between processes a trace travels as a W3C `traceparent`: a column of the outbox
// and a header on NATS. Where no exporter is configured nothing is recorded: a
// traceparent that came in is passed on unchanged, and where none came in a trace
// begins that is marked as not sampled, so that all that one call causes is found.
package trace

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

const header = "traceparent"

var w3c = propagation.TraceContext{}

// Enabled tells whether the environment names an exporter
// (OTEL_EXPORTER_OTLP_ENDPOINT or its variant for traces).
func Enabled() bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Export starts sending spans where Enabled, and returns what flushes and stops it.
// Everything about the exporter comes from OpenTelemetry's own environment variables.
func Export(ctx context.Context, service string) (stop func(context.Context) error, err error) {
	if !Enabled() {
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

// Start opens a span below the one that ctx carries. What it returns carries a trace in
// any case: where there was none, one begins.
func Start(ctx context.Context, name string) (context.Context, oteltrace.Span) {
	ctx, span := otel.Tracer("partilha").Start(ctx, name)
	if !span.SpanContext().IsValid() {
		ctx = oteltrace.ContextWithSpanContext(ctx, unsampled())
	}
	return ctx, span
}

// unsampled begins a trace that nobody records. Its ids only tell it apart from others:
// they need not be hard to guess.
func unsampled() oteltrace.SpanContext {
	var config oteltrace.SpanContextConfig
	binary.BigEndian.PutUint64(config.TraceID[:8], rand.Uint64())
	binary.BigEndian.PutUint64(config.TraceID[8:], rand.Uint64()|1) // neither id may be 0
	binary.BigEndian.PutUint64(config.SpanID[:], rand.Uint64()|1)
	return oteltrace.NewSpanContext(config)
}

// Join returns a context whose spans continue traceparent; an empty or malformed
// one leaves ctx as it is.
func Join(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return w3c.Extract(ctx, propagation.MapCarrier{header: traceparent})
}

// Parent returns the traceparent that whatever ctx causes must carry, or "".
func Parent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier[header]
}
