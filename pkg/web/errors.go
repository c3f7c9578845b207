package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"partilha.dev/pkg/fault"
)

// errorBody is the one shape of every error.
type errorBody struct {
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Details   []fault.Detail `json:"details,omitzero"`
	RequestID string         `json:"request_id"`
}

// statusOf turns the kind of a fault into an HTTP status.
func statusOf(f *fault.Error) int {
	switch f.Kind {
	case fault.Invalid:
		if status, special := specialStatus[f.Code]; special {
			return status
		}
		return http.StatusBadRequest
	case fault.Rule:
		return http.StatusUnprocessableEntity
	case fault.Unauthorized:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.Limited:
		return http.StatusTooManyRequests
	case fault.Unavailable, fault.NotYet:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// specialStatus are the refusals for which HTTP has statuses of their own.
var specialStatus = map[string]int{
	"cursor_expired":         http.StatusGone,
	"method_not_allowed":     http.StatusMethodNotAllowed,
	"request_timeout":        http.StatusRequestTimeout,
	"payload_too_large":      http.StatusRequestEntityTooLarge,
	"unsupported_media_type": http.StatusUnsupportedMediaType,
}

// statusLeft is what the metric says of a call whose caller left before the answer, as
// proxies have it. Nobody gets to see it.
const statusLeft = 499

// NotFound is the answer for whatever is not there, or is somebody else's.
func NotFound() error {
	return fault.New(fault.NotFound, "not_found", "there is nothing at this address")
}

// retryAfter is how many seconds a caller is asked to wait for a dependency.
const retryAfter = "1"

// explain is how err is shown: what carries no fault gets a safe text.
func explain(err error) (f *fault.Error, status int) {
	if f = fault.Of(err); f == nil {
		f = fault.New(fault.Unknown, "internal_error", "something went wrong on our side; the request id helps us find it")
	}
	return f, statusOf(f)
}

// refuse writes err in the one shape. What failed on our side is logged here, once.
func refuse(w http.ResponseWriter, r *http.Request, log *zap.Logger, err error) int {
	f, status := explain(err)
	requestID := w.Header().Get(requestIDHeader)
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close")
	}
	if status >= 500 {
		log.Error("request failed", zap.String("method", r.Method), zap.String("path", r.URL.Path),
			zap.Int("status", status), zap.String("request_id", requestID), zap.Error(err))
	}
	body := errorBody{Code: f.Code, Message: f.Message, Details: f.Details, RequestID: requestID}
	raw, _ := json.Marshal(body, jsontext.AllowInvalidUTF8(true)) // nothing but text: it cannot fail
	writeJSON(w, status, raw)
	return status
}

// refuseMethod answers a path that is known, asked with a method that it does not have.
func refuseMethod(w http.ResponseWriter, r *http.Request, methods []string) {
	w.Header().Set("Allow", strings.Join(methods, ", "))
	refuse(w, r, zap.NewNop(), fault.Newf(fault.Invalid, "method_not_allowed", "%s is not possible here; see the Allow header", r.Method))
}

// writeJSON sends an answer; raw is nil where it has no body.
func writeJSON(w http.ResponseWriter, status int, raw []byte) {
	if raw != nil {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	}
	w.WriteHeader(status)
	w.Write(raw)
}
