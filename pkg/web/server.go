package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	drainWithin = 10 * time.Second
	readWithin  = 10 * time.Second
	writeWithin = 15 * time.Second
)

// Serve answers on the listener until ctx ends, then lets the requests under way
// finish, for at most ten seconds; those that listen are told to end at once.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := newServer(ctx, handler)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWithin)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("drain HTTP: %w", errors.Join(err, server.Close()))
	}
	return nil
}

// newServer has the limits that keep a slow or endless caller from holding a connection:
// 5 s for the head, 10 s for all of the request, 15 s from its head to the end of the
// answer, 60 s between two requests, 16 KiB of headers.
func newServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readWithin,
		WriteTimeout:      writeWithin,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16<<10 - 4096, // net/http grants 4 KiB more

		DisableGeneralOptionsHandler: true, // `OPTIONS *` gets an answer in our shape

		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), drainingKey{}, ctx)
		},
	}
}
