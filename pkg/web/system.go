package web

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"partilha.dev/pkg/openapi"
)

// Readiness is what a service says of itself to whoever routes traffic.
type Readiness struct {
	Status  string   `json:"status"`            // ready, degraded or unavailable
	Reasons []string `json:"reasons,omitempty"` // why it is not ready
}

// System is what every process answers beside its API, without a key.
type System struct {
	Document *openapi.Document
	Ready    func(ctx context.Context) Readiness
}

// Around serves the system's own addresses and hands all others to api.
func (s System) Around(api http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, Readiness{Status: "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		readiness := s.Ready(ctx)
		status := http.StatusOK
		if readiness.Status == "unavailable" {
			status = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", retryAfter)
		}
		writeJSON(w, status, readiness)
	})
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.HandleFunc("GET /openapi.json", serveBytes("application/json", s.Document.JSON()))
	mux.HandleFunc("GET /docs", serveBytes("text/html; charset=utf-8", s.Document.Docs()))
	mux.Handle("/", api)
	return withRequestID(mux)
}

func serveBytes(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(body)
	}
}
