package web

import (
	"context"
	"net/http"
	"path"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

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

// Around serves the system's own addresses and hands all others to api, except a path
// that is not in its plainest form: nothing is there, and nobody is redirected.
func (s System) Around(api http.Handler) http.Handler {
	own := map[string]http.Handler{
		"/healthz":      http.HandlerFunc(healthz),
		"/readyz":       http.HandlerFunc(s.readyz),
		"/metrics":      promhttp.Handler(),
		"/openapi.json": serveBytes("application/json", s.Document.JSON()),
		"/docs":         serveBytes("text/html; charset=utf-8", s.Document.Docs()),
	}
	return withRequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, found := own[r.URL.Path]
		switch {
		case !isPlain(r.URL.EscapedPath()):
			refuse(w, r, zap.NewNop(), NotFound())
		case !found:
			api.ServeHTTP(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			refuseMethod(w, r, []string{http.MethodGet, http.MethodHead})
		default:
			handler.ServeHTTP(w, r)
		}
	}))
}

// isPlain tells whether a path has no empty, "." or ".." segment; one "/" may end it.
func isPlain(address string) bool {
	clean := path.Clean(address)
	return clean[0] == '/' && (address == clean || address == clean+"/" && clean != "/")
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

func (s System) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	readiness := s.Ready(ctx)
	status := http.StatusOK
	if readiness.Status == "unavailable" {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", retryAfter)
	}
	raw, _ := json.Marshal(readiness, jsontext.AllowInvalidUTF8(true)) // nothing but text: it cannot fail
	writeJSON(w, status, raw)
}

func serveBytes(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(body)
	}
}
