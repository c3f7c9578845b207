package webhooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// tlsReceiver is an https server that the returned pool trusts.
func tlsReceiver(t *testing.T, configure func(*httptest.Server)) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Proto", r.Proto)
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{}
	configure(server)
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return server, pool
}

func TestTLS(t *testing.T) {
	attempt := func(t *testing.T, url string, roots *x509.CertPool) outcome {
		t.Helper()
		s := newSender(localPolicy, patient, net.DefaultResolver.LookupNetIP)
		s.transport.TLSClientConfig.RootCAs = roots
		defer s.close()
		return s.send(t.Context(), sample(url))
	}
	t.Run("a trusted receiver is spoken to in HTTP/1.1, even if it could do more", func(t *testing.T) {
		server, pool := tlsReceiver(t, func(s *httptest.Server) { s.EnableHTTP2 = true })
		got := attempt(t, server.URL, pool)
		mustBeDelivered(t, got, 200)
		if got.Excerpt != "HTTP/1.1" {
			t.Errorf("spoke %s", got.Excerpt)
		}
	})
	t.Run("a receiver that speaks HTTP/2 and nothing else is reset", func(t *testing.T) {
		trusted, pool := tlsReceiver(t, func(*httptest.Server) {})
		r := receive(t, func(_ *receiver, conn net.Conn) {
			secured := tls.Server(conn, &tls.Config{Certificates: trusted.TLS.Certificates, NextProtos: []string{"h2"}})
			_, _ = secured.Read(make([]byte, 1))
			_, _ = io.WriteString(secured, "\x00\x00\x00\x04\x00\x00\x00\x00\x00") // its settings
			_ = secured.Close()
		})
		mustHaveFailed(t, attempt(t, "https://"+r.addr, pool), failedReset, 0)
	})
	t.Run("a certificate of an unknown authority is tls", func(t *testing.T) {
		server, _ := tlsReceiver(t, func(*httptest.Server) {})
		mustHaveFailed(t, attempt(t, server.URL, nil), failedTLS, 0)
	})
	t.Run("a certificate for another name is tls", func(t *testing.T) {
		server, pool := tlsReceiver(t, func(*httptest.Server) {})
		url := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
		mustHaveFailed(t, attempt(t, url, pool), failedTLS, 0)
	})
	t.Run("TLS 1.1 is tls", func(t *testing.T) {
		server, pool := tlsReceiver(t, func(s *httptest.Server) {
			s.TLS.MinVersion, s.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		})
		mustHaveFailed(t, attempt(t, server.URL, pool), failedTLS, 0)
	})
	t.Run("a receiver that speaks plain http is tls", func(t *testing.T) {
		r := receive(t, func(_ *receiver, conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") })
		mustHaveFailed(t, attempt(t, "https://"+r.addr, nil), failedTLS, 0)
	})
	t.Run("a handshake that is hung up is tls", func(t *testing.T) {
		r := receive(t, func(_ *receiver, conn net.Conn) { _, _ = conn.Read(make([]byte, 512)) })
		mustHaveFailed(t, attempt(t, "https://"+r.addr, nil), failedTLS, 0)
	})
	t.Run("a handshake that never ends is timeout", func(t *testing.T) {
		r := receive(t, func(_ *receiver, conn net.Conn) { hold(conn) })
		mustHaveFailed(t, sendTo(t, impatient, "https://"+r.addr), failedTimeout, 0)
	})
}

func TestTheFirstCauseWins(t *testing.T) {
	blocked := &net.OpError{Op: "dial", Err: fmt.Errorf("control: %w", errBlocked)}
	if got := classify(errors.Join(context.DeadlineExceeded, blocked), false); got != failedBlocked {
		t.Errorf("classify = %s", got)
	}
}
