// Package web is the one way in which every service speaks HTTP: routes, keys,
// limits, strict bodies, errors in one shape, paging, request ids.
//
// A request is judged in a fixed order: route, key, scope, headers, size, query, body.
// What a handler gets has passed all of that but the last.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/trace"
)

// Route is one endpoint. Its request body, if it has one, and the parameters of its query
// are what the OpenAPI document says of the same method and pattern.
type Route struct {
	Method, Pattern string
	Access          Access
	// Batch is the member of the body that lists what the call is to do, for
	// [Call.Elements]; empty where a call does one thing.
	Batch string
	// Lenient says that the query may have any parameters, as the body may have members that
	// nobody knows: whoever calls sends more than is asked for.
	Lenient bool
	// Listens says that the call waits for what is going to happen, for long perhaps. It
	// ends by [Call.Over] and counts among the calls that listen, not among the others.
	Listens bool
	Handle  func(*Call) (Answer, error)
}

// Access says who may call a route.
type Access struct {
	scope    auth.Scope
	operator bool
}

// Scope admits tenants' keys that have the scope.
func Scope(s auth.Scope) Access { return Access{scope: s} }

// Operator admits whoever runs the platform.
var Operator = Access{operator: true}

// Answer is what a handler says. A nil Body with status 204 sends none.
type Answer struct {
	Status int
	Body   any
	Stream *Stream           // instead of Body, for what may be too large to hold
	Header map[string]string // beside the ones that every answer carries
}

// Keys finds the key that a credential names. Its errors are faults.
type Keys interface {
	Key(ctx context.Context, c auth.Credential, scope auth.Scope) (auth.Key, error)
}

// API is all that a service answers.
type API struct {
	Document      *openapi.Document
	Routes        []Route
	Keys          Keys
	OperatorToken string // empty: nobody is the operator
	Limiter       *Limiter
	Log           *zap.Logger
	Now           func() time.Time
}

// Handler builds the handler. A route that the document does not describe, or whose body
// it does not, is a mistake of ours, and an error.
func (a API) Handler() (http.Handler, error) {
	router := chi.NewRouter()
	router.Use(a.fixedPaths)
	for _, route := range a.Routes {
		takesBody := route.Method == http.MethodPost || route.Method == http.MethodPatch
		body := a.Document.Body(route.Method, route.Pattern)
		if !a.Document.Describes(route.Method, route.Pattern) {
			return nil, fmt.Errorf("the OpenAPI document does not describe %s %s", route.Method, route.Pattern)
		}
		if takesBody && body == nil {
			return nil, fmt.Errorf("the OpenAPI document has no body for %s %s", route.Method, route.Pattern)
		}
		e := &endpoint{api: a, route: route, body: body, query: a.Document.QueryNames(route.Method, route.Pattern), maxBody: maxBody, measure: measureRoute(route.Method, route.Pattern)}
		if route.Batch != "" {
			e.maxBody = maxBatchBody
			if e.list = body.List(route.Batch); e.list == nil {
				return nil, fmt.Errorf("the body of %s %s has no list %s in the OpenAPI document", route.Method, route.Pattern, route.Batch)
			}
		}
		router.Method(route.Method, route.Pattern, e)
	}
	router.NotFound(func(w http.ResponseWriter, r *http.Request) { refuse(w, r, a.Log, NotFound()) })
	router.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		methods := methodsAt(router, r.URL)
		if len(methods) == 0 { // the router does not look for a path where it does not know the method
			refuse(w, r, a.Log, NotFound())
			return
		}
		refuseMethod(w, r, methods)
	})
	return router, nil
}

// askable are the methods of routes, in the order in which an answer names them.
var askable = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// fixedPaths keeps a route without parameters from being taken for one with: a method that
// only /things/{id} has is not possible at /things/batch.
func (a API) fixedPaths(next http.Handler) http.Handler {
	methods := map[string][]string{}
	for _, method := range askable {
		for _, route := range a.Routes {
			if route.Method == method && !strings.Contains(route.Pattern, "{") {
				methods[route.Pattern] = append(methods[route.Pattern], method)
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if possible := methods[writtenPath(r.URL)]; possible != nil && !slices.Contains(possible, r.Method) {
			refuseMethod(w, r, possible)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// writtenPath is the path as it was written, where that differs from what it means: the
// router goes by that.
func writtenPath(address *url.URL) string { return cmp.Or(address.RawPath, address.Path) }

// methodsAt returns what the address can be asked with.
func methodsAt(router chi.Router, address *url.URL) (methods []string) {
	for _, method := range askable {
		if router.Match(chi.NewRouteContext(), method, writtenPath(address)) {
			methods = append(methods, method)
		}
	}
	return methods
}

// endpoint judges a request and hands it to its handler.
type endpoint struct {
	api     API
	route   Route
	body    *openapi.Body
	query   []string      // names of its parameters
	list    *openapi.List // of a batch
	maxBody int           // bytes
	measure func(status int, took time.Duration)
}

// answerWithin is how long a call may take, unless it listens; after that its context
// ends, and it is refused as what it waited for is. A commit that has begun by then is
// seen through ([postgres.Transact]), so the two together leave time to send the answer
// before the server gives up at writeWithin. An answer that is streamed has no end.
const answerWithin = 10 * time.Second

var errTooLong = errors.New("the call took too long")

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	ctx, span := trace.Start(trace.Join(r.Context(), r.Header.Get("traceparent")), e.route.Method+" "+e.route.Pattern)
	defer span.End()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	call := &Call{Request: r.WithContext(ctx), caller: r.Context(), endpoint: e, header: w.Header()}
	if !e.route.Listens {
		call.timer = time.AfterFunc(answerWithin, func() { end(errTooLong) })
		defer call.timer.Stop()
	}
	status := e.serve(w, call)
	took := time.Since(start)
	e.measure(status, took)
	if check := e.api.Log.Check(zap.InfoLevel, "request"); check != nil {
		check.Write(zap.String("method", r.Method), zap.String("route", e.route.Pattern), zap.Int("status", status),
			zap.Stringer("tenant_id", call.Key.TenantID), zap.String("request_id", w.Header().Get(requestIDHeader)), zap.Duration("took", took))
	}
}

func (e *endpoint) serve(w http.ResponseWriter, call *Call) (status int) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			status = e.refuse(w, call, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if err := e.authenticate(call); err != nil {
		return e.refuse(w, call, err)
	}
	if !e.route.Access.operator {
		if err := e.api.Limiter.charge(call.Key.ID, 0, 1, call.header); err != nil {
			return e.refuse(w, call, err)
		}
		at := lane{call.Tenant(), e.kind()}
		if err := e.api.Limiter.enter(call.Context(), at, call.header); err != nil {
			return e.refuse(w, call, err)
		}
		defer e.api.Limiter.leave(at)
	}
	if e.route.Listens {
		defer call.listen(w)()
	}
	if e.body != nil {
		if err := call.readBody(w); err != nil {
			return e.refuse(w, call, err)
		}
	}
	if !e.route.Lenient {
		if err := call.Query(e.query...); err != nil {
			return e.refuse(w, call, err)
		}
	}
	answer, err := e.route.Handle(call)
	if refusal := call.settle(); refusal != nil {
		err = refusal
	}
	if err != nil {
		return e.refuse(w, call, err)
	}
	var raw []byte
	if answer.Body != nil {
		if raw, err = json.Marshal(answer.Body); err != nil {
			return e.refuse(w, call, fmt.Errorf("write the answer: %w", err))
		}
	}
	for name, value := range answer.Header {
		w.Header().Set(name, value)
	}
	if answer.Stream != nil {
		if call.timer != nil {
			call.timer.Stop() // each write has its own time, however many there are
		}
		return answer.Stream.send(w, call.Request, answer.Status, e.api.Log, func(err error) int { return e.refuse(w, call, err) })
	}
	writeJSON(w, answer.Status, raw)
	return answer.Status
}

// refuse answers a call that has failed. One that failed because its caller has left is
// nobody's failure, and nobody reads the answer.
func (e *endpoint) refuse(w http.ResponseWriter, call *Call, err error) int {
	if !call.Left(err) {
		return refuse(w, call.Request, e.api.Log, err)
	}
	e.api.Log.Info("caller left", zap.String("method", call.Method), zap.String("path", call.URL.Path),
		zap.String("request_id", call.header.Get(requestIDHeader)), zap.Error(err))
	w.WriteHeader(statusLeft)
	return statusLeft
}

// kind is what the endpoint's calls are counted among.
func (e *endpoint) kind() kind {
	switch {
	case e.route.Listens:
		return listener
	case e.list != nil:
		return batch
	case e.route.Method == http.MethodGet:
		return reader
	default:
		return single
	}
}

// authenticate admits the call, or says what a stranger is told.
func (e *endpoint) authenticate(call *Call) error {
	err := e.admit(call)
	if fault.KindOf(err) == fault.Unauthorized {
		return e.api.Limiter.stranger(call.Request, call.header, err)
	}
	return err
}

// admit checks who asks, and whether they may.
func (e *endpoint) admit(call *Call) error {
	token, ok := bearer(call.Request.Header)
	if !ok || holdsKey(call.URL.RawQuery) {
		return auth.Unauthorized()
	}
	if e.route.Access.operator {
		return admitOperator(token, e.api.OperatorToken)
	}
	credential, ok := auth.Parse(token)
	if !ok {
		return auth.Unauthorized()
	}
	key, err := e.vouch(call.Context(), credential)
	if err != nil {
		return err
	}
	call.Key, call.Credential = key, credential
	return nil
}

// vouch finds the key of a credential that may ask for this now.
func (e *endpoint) vouch(ctx context.Context, credential auth.Credential) (auth.Key, error) {
	key, err := e.api.Keys.Key(ctx, credential, e.route.Access.scope)
	if err != nil {
		return key, err
	}
	return key, key.Admit(credential, e.route.Access.scope, e.api.Now())
}

// readBody reads the whole body within the limit, of a type that can be read.
func (c *Call) readBody(w http.ResponseWriter) error {
	if encoding := c.Request.Header.Values("Content-Encoding"); len(encoding) > 0 {
		return fault.New(fault.Invalid, "unsupported_media_type", "send the body without a Content-Encoding")
	}
	if !isJSON(c.Request.Header.Values("Content-Type")) {
		return fault.New(fault.Invalid, "unsupported_media_type", "send the body as application/json")
	}
	most := int64(c.endpoint.maxBody)
	if c.Request.ContentLength > most {
		return tooLarge("a body", most)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, c.Request.Body, most))
	var exceeded *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &exceeded):
		return tooLarge("a body", most)
	case errors.As(err, &network) && network.Timeout():
		return fault.New(fault.Invalid, "request_timeout", "the body did not arrive in time").Because(err)
	case err != nil: // ended before its length, or badly chunked
		return fault.InvalidBody(fault.Detail{Code: "syntax", Message: "the body did not arrive whole"}).Because(err)
	}
	c.body = raw
	return nil
}

func tooLarge(what string, most int64) error {
	return fault.Newf(fault.Invalid, "payload_too_large", "%s has at most %d bytes", what, most)
}
