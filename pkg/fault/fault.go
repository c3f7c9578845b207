// Package fault is the one vocabulary of failure.
//
// A handler returns a fault and both edges understand it: the web edge turns its
// Kind into an HTTP status, the bus decides whether a message is parked or comes
// again. An error that carries no fault is Unknown: a client sees a safe text, a
// message is retried, and an operator is told.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what may be done about a failure, not where it happened.
type Kind int

const (
	// Unknown is a defect or a surprise. HTTP 500; a message comes again.
	Unknown Kind = iota
	// Invalid input can never succeed as it stands. HTTP 400; a message is parked.
	Invalid
	// Rule means that well-formed input breaks a business rule. HTTP 422; a message is parked.
	Rule
	// Unauthorized means that nobody trustworthy is asking. HTTP 401.
	Unauthorized
	// Forbidden means that the caller is known and may not. HTTP 403.
	Forbidden
	// NotFound also stands for what belongs to somebody else. HTTP 404; a message is parked.
	NotFound
	// Conflict means that the state of things forbids it. HTTP 409; a message is parked.
	Conflict
	// NotYet means that the cause of a message has not arrived. It comes again later; after
	// a day it is parked.
	NotYet
	// Limited means that the caller asks too often. HTTP 429.
	Limited
	// Unavailable means that a dependency is down. HTTP 503; a message comes again, with backoff.
	Unavailable
)

// Detail is one issue with one member of a request.
type Detail struct {
	Path    string `json:"path"`    // JSON Pointer of the member; "" is the whole body
	Code    string `json:"code"`    // machine-readable, for example "too_long"
	Message string `json:"message"` // what to do, in plain words
}

// Error is a failure whose words may be shown to whoever asked.
type Error struct {
	Kind    Kind
	Code    string // the wire code, for example "create_failed"
	Message string // safe to show: names no host, statement or secret
	Details []Detail
	cause   error
}

// New makes a fault that can be shown to the caller.
func New(kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// Newf is New with a formatted message.
func Newf(kind Kind, code, format string, args ...any) *Error {
	return New(kind, code, fmt.Sprintf(format, args...))
}

// Because records what caused the fault, for the log; the caller never sees it.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Error is the text for the log: message and cause.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Code + ": " + e.Message + ": " + e.cause.Error()
	}
	return e.Code + ": " + e.Message
}

// Unwrap returns what caused the fault, if that was recorded.
func (e *Error) Unwrap() error { return e.cause }

// Of returns the fault that err carries, or nil.
func Of(err error) *Error {
	var f *Error
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// KindOf returns the kind of err; Unknown where it carries no fault.
func KindOf(err error) Kind {
	if f := Of(err); f != nil {
		return f.Kind
	}
	return Unknown
}

// MaxDetails is how many issues one answer lists. Whoever looks for issues may stop
// after one more.
const MaxDetails = 100

// MaxPaths is how many bytes the paths of an answer have, unless there is but one path: a
// name that was sent once can be part of many paths. So an answer takes some kilobytes
// more than the body that it refuses, at most. What would exceed it need not be found.
const MaxPaths = 8 << 10

// InvalidBody is the answer to a body that breaks its schema, with every issue at
// once, or the first hundred where there are more.
func InvalidBody(details ...Detail) *Error {
	message := "1 field is not valid"
	if n := len(details); n != 1 {
		message = fmt.Sprintf("%d fields are not valid", n)
	}
	e := &Error{Kind: Invalid, Code: "invalid_body", Message: message, Details: details}
	return e.First(MaxDetails)
}

// First is the same fault with that many of its details, or fewer where their paths are
// long; the fault itself if it has no more.
func (e *Error) First(most int) *Error {
	n, paths := 0, 0
	for n < min(most, len(e.Details)) && (n == 0 || paths+len(e.Details[n].Path) <= MaxPaths) {
		paths += len(e.Details[n].Path)
		n++
	}
	if n == len(e.Details) {
		return e
	}
	c := *e
	c.Details = e.Details[:n]
	c.Message = fmt.Sprintf("more than %d fields are not valid; the first are listed", n)
	return &c
}

// InvalidParameter is the answer to a query or path parameter that cannot be used.
func InvalidParameter(name, message string) *Error {
	return &Error{
		Kind: Invalid, Code: "invalid_parameter", Message: name + ": " + message,
		Details: []Detail{{Path: "/" + name, Code: "format", Message: message}},
	}
}

// Unreachable is the answer while a dependency is down; the same call may succeed later.
func Unreachable(cause error) *Error {
	return New(Unavailable, "unavailable", "a dependency is not reachable; repeat the same call later").Because(cause)
}
