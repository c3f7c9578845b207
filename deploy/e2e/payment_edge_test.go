package e2e

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"partilha.dev/pkg/client"

	"partilha.dev/deploy/e2e/stage"
)

// edgeOf puts the system behind one address, as an operator's proxy does, and answers
// 502 for whoever is not there.
func edgeOf(t testing.TB, s stage.System) string {
	t.Helper()
	edge := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if base, err := url.Parse(s.BaseFor(r.In.URL.Path)); err == nil {
				r.SetURL(base)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(edge.Close)
	return edge.URL
}

func newClient(t testing.TB, base, key string, options client.Options) *client.Client {
	t.Helper()
	c, err := client.New(base, key, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// done is the result of a call that must succeed.
func done[T any](result T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

// all are the rows of a list that must not fail.
func all[T any](t testing.TB, rows func(func(T, error) bool)) (list []T) {
	t.Helper()
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, row)
	}
	return list
}

// wantRefusal wants an error with this status and code.
func wantRefusal(t testing.TB, err error, status int, code string) {
	t.Helper()
	var refused *client.Error
	if !errors.As(err, &refused) || refused == nil || refused.Status != status || refused.Code != code || refused.RequestID == "" {
		t.Errorf("the error is %v, want %d %s", err, status, code)
	}
}
