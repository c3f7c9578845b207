package service

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// running is the shop, served by this process.
type running struct {
	t       *testing.T
	shop    *shop
	url     string
	addr    string
	stop    func()
	outcome func() error // waits for its end
}

// freeAddr is an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func serveConfig(t *testing.T, databaseURL string) Config {
	t.Helper()
	return Config{
		DatabaseURL: databaseURL, DatabasePool: 4, NATSURL: "nats://127.0.0.1:1", NATSReplicas: 1,
		Address: Address{freeAddr(t)}, LogLevel: "error", Migrate: "off", Limits: usual,
	}
}

// start serves the shop and returns when it answers; prepare changes it before.
func start(t *testing.T, config Config, prepare func(*shop)) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	made := make(chan *shop, 1)
	p := shopProgram()
	p.New = func(ctx context.Context, deps Deps) (Service, error) {
		s, err := newShop(ctx, deps)
		prepare(s.(*shop))
		made <- s.(*shop)
		return s, err
	}
	result := make(chan error, 1)
	go func() { result <- p.serve(ctx, config) }()
	r := &running{t: t, addr: config.Addr, url: "http://" + config.Addr, stop: cancel}
	r.outcome = sync.OnceValue(func() error {
		select {
		case err := <-result:
			return err
		case <-time.After(patience):
			return errors.New("it does not end")
		}
	})
	t.Cleanup(func() { cancel(); r.outcome() })
	testkit.Eventually(t, patience, "an answer", func() bool {
		response, err := http.Get(r.url + "/")
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	})
	r.shop = <-made
	return r
}

// wait asks for what takes until it is released.
func (r *running) wait() <-chan string {
	result := make(chan string, 1)
	go func() {
		response, err := http.Get(r.url + "/wait")
		if err != nil {
			result <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		result <- string(body)
	}()
	<-r.shop.entered
	return result
}

// closed waits until nobody new gets in.
func (r *running) closed() {
	r.t.Helper()
	testkit.Eventually(r.t, patience, "a closed door", func() bool {
		conn, err := net.Dial("tcp", r.addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

func TestAServiceEndsWithHTTPFirstThenItsWorkThenItsConnections(t *testing.T) {
	t.Parallel()
	var useful error
	r := start(t, serveConfig(t, testkit.Database(t, bus.Schema, shopSchema)), func(s *shop) {
		s.ended = func(deps Deps) { useful = deps.Pool.Ping(context.Background()) }
	})
	answered := r.wait()

	r.stop()
	r.closed()
	select {
	case <-r.shop.stopped:
		t.Error("the background is stopped while a request is under way")
	case got := <-answered:
		t.Errorf("answered too early: %s", got)
	default:
	}
	close(r.shop.release)

	if got := <-answered; got != "waited" {
		t.Errorf("the answer is %q", got)
	}
	if err := r.outcome(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	select {
	case <-r.shop.stopped:
	default:
		t.Error("the background is not told to stop")
	}
	if useful != nil {
		t.Errorf("the background has lost its database: %v", useful)
	}
	if err := r.shop.deps.Pool.Ping(t.Context()); err == nil {
		t.Error("the pool is still open")
	}
}

func TestAServiceWhoseBackgroundFailsEndsWithThatError(t *testing.T) {
	t.Parallel()
	r := start(t, serveConfig(t, testkit.Database(t, bus.Schema, shopSchema)), func(*shop) {})
	answered := r.wait()
	defect := errors.New("the relay is broken")
	r.shop.fail <- defect
	r.closed()
	close(r.shop.release)
	if got := <-answered; got != "waited" {
		t.Errorf("the request under way is answered with %q", got)
	}
	if err := r.outcome(); !errors.Is(err, defect) {
		t.Errorf("it ends with %v", err)
	}
}

func TestAnAddressThatIsTakenIsNamedInOneSentence(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	database := "DATABASE_URL=" + testkit.Database(t, bus.Schema, shopSchema)
	status, _, stderr := command(t, "shop", []string{database, "ADDR=" + listener.Addr().String(), "LOG_LEVEL=error"}, "serve")
	if status != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "shop: listen on ADDR: ") || !strings.Contains(stderr, listener.Addr().String()) {
		t.Errorf("status %d, %q", status, stderr)
	}
}

func TestAServiceThatCannotBeWiredDoesNotStart(t *testing.T) {
	t.Parallel()
	p := shopProgram()
	defect := errors.New("no document")
	p.New = func(context.Context, Deps) (Service, error) { return nil, defect }
	if err := p.serve(t.Context(), serveConfig(t, testkit.Database(t, bus.Schema, shopSchema))); err != defect {
		t.Error(err)
	}
}

func TestNothingIsWiredOnPendingMigrations(t *testing.T) {
	t.Parallel()
	p := shopProgram()
	p.New = func(context.Context, Deps) (Service, error) { t.Error("it is wired"); return nil, errors.New("x") }
	if err := p.serve(t.Context(), serveConfig(t, testkit.Database(t, shopSchema))); !errors.Is(err, postgres.ErrPending) || !strings.Contains(err.Error(), "(bus)") {
		t.Error(err)
	}
}

func TestSIGTERMEndsAServiceInGoodOrder(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := launch(t, "publisher", []string{"DATABASE_URL=" + testkit.Database(t, shopSchema)}, "serve")
		if err := p.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if status, _, stderr := p.wait(); status != 0 || !strings.Contains(stderr, `"msg":"stopped"`) {
			t.Errorf("%s: status %d, %s", signal, status, stderr)
		}
	}
}

func TestASilentCollectorOfTracesDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := launch(t, "shop", []string{
		"DATABASE_URL=" + testkit.Database(t, bus.Schema, shopSchema), "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + silent.Addr().String(),
	}, "serve")
	response, err := http.Get("http://" + p.addr + "/traced")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	start := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := p.wait(); status != 0 || time.Since(start) > 8*time.Second {
		t.Errorf("status %d after %s: %s", status, time.Since(start), stderr)
	}
}
