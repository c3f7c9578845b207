package service

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answering is a server whose /readyz answers this until the test ends.
func answering(t *testing.T, status int, answer string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("it asks %s", r.URL.Path)
		}
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAServiceIsAskedByItsOwnProgramWhetherItIsReady(t *testing.T) {
	t.Parallel()
	addr := answering(t, http.StatusOK, `{"status":"degraded"}`).Listener.Addr().String()
	_, port, _ := strings.Cut(addr, ":")
	for _, listens := range []string{addr, "0.0.0.0:" + port, ":" + port, "[::]:" + port} {
		if status, stdout, stderr := command(t, "shop", []string{"ADDR=" + listens}, "healthcheck"); status != 0 || stdout+stderr != "" {
			t.Errorf("%s: status %d, %q %q", listens, status, stdout, stderr)
		}
	}
	unavailable, gone := answering(t, http.StatusServiceUnavailable, `{"status":"unavailable"}`), answering(t, http.StatusOK, "")
	gone.Close()
	for listens, want := range map[string]string{
		unavailable.Listener.Addr().String(): `shop: {"status":"unavailable"}`, gone.Listener.Addr().String(): "refused", "8080": "ADDR",
	} {
		if status, _, stderr := command(t, "shop", []string{"ADDR=" + listens}, "healthcheck"); status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q, want %q", listens, status, stderr, want)
		}
	}
}

func TestAProgramTellsItsVersionWithoutAnyConfiguration(t *testing.T) {
	t.Parallel()
	if status, stdout, stderr := command(t, "shop", nil, "version"); status != 0 || stdout != "shop dev (unknown)\n" || stderr != "" {
		t.Errorf("status %d, %q %q", status, stdout, stderr)
	}
}
