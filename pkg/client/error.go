package client

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"partilha.dev/pkg/fault"
)

// Error is a refusal by Partilha, or by something between it and the client. It is found
// in the error of a call by errors.As.
type Error struct {
	// Status is the HTTP status.
	Status int `json:"status"`

	// Code says for programs what went wrong: "create_failed", "partner_not_found" and so
	// on; "" if the answer did not come from Partilha itself.
	Code string `json:"code"`

	// Message says for people what to do.
	Message string `json:"message"`

	// Details are the issues of an invalid body, all of them at once.
	Details []fault.Detail `json:"details"`

	// RequestID is how the operator of Partilha finds the call in the logs.
	RequestID string `json:"request_id"`

	// RetryAfter is how long to wait before another attempt; 0 if that was not said.
	RetryAfter time.Duration `json:"-"`
}

// Error is status, code, message, issues and request id in one line.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(strconv.Itoa(e.Status))
	if e.Code != "" {
		text.WriteString(" " + e.Code)
	}
	text.WriteString(": " + e.Message)
	for i, d := range e.Details {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		fmt.Fprintf(&text, "%s%s %s", separator, d.Path, d.Message)
	}
	if e.RequestID != "" {
		text.WriteString(" (request " + e.RequestID + ")")
	}
	return text.String()
}

// Temporary tells whether the same call may succeed later: 429, 502, 503 and 504. The
// client has repeated it already where it could, but not the elements of a batch.
func (e *Error) Temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// refusal reads the answer to a call that was not granted. What is no error of
// Partilha's, the page of a proxy perhaps, is told by its status alone.
func (c *Client) refusal(response *http.Response) *Error {
	raw, readErr := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	// Whoever shows the request that it was sent must not bring the key into a log.
	text := strings.ReplaceAll(string(raw), c.key(), "[key]")
	e := &Error{}
	if err := json.Unmarshal([]byte(text), e); err != nil || readErr != nil || e.Code == "" {
		e = &Error{Message: http.StatusText(response.StatusCode)}
	}
	e.Status = response.StatusCode
	e.RetryAfter = retryAfter(response.Header)
	if e.RequestID == "" {
		e.RequestID = response.Header.Get("X-Request-Id")
	}
	return e
}
