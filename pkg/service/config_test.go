package service

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestTheDatabaseIsAllThatMustBeConfigured(t *testing.T) {
	clean(t, Config{})
	t.Setenv("DATABASE_URL", "postgres://one")
	var got Config
	if err := ReadEnvironment(&got); err != nil {
		t.Fatal(err)
	}
	want := Config{
		DatabaseURL: "postgres://one", DatabasePool: 16, NATSURL: "nats://127.0.0.1:4222", NATSReplicas: 1,
		Address: Address{"127.0.0.1:8080"}, LogLevel: "info", Migrate: "off", Limits: usual,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}

	for _, missing := range []func(){func() { t.Setenv("DATABASE_URL", "") }, func() { os.Unsetenv("DATABASE_URL") }} {
		missing()
		if err := ReadEnvironment(&got); err == nil || err.Error() != "DATABASE_URL is not set" {
			t.Errorf("without a database: %v", err)
		}
	}
}

// With fewer connections what compares, repairs and watches could hold them all while NATS
// does not answer, and no call would get one.
func TestAPoolHasRoomForCallsBesideTheBackground(t *testing.T) {
	clean(t, Config{})
	t.Setenv("DATABASE_URL", "postgres://one")
	for pool, want := range map[string]bool{"3": false, "4": true} {
		t.Setenv("DATABASE_POOL", pool)
		var got Config
		if err := ReadEnvironment(&got); (err == nil) != want {
			t.Errorf("%s connections: %v", pool, err)
		}
	}
}

func TestALogLevelThatIsNoneIsNamed(t *testing.T) {
	for _, good := range []string{"debug", "info", "warn", "error"} {
		if log, err := NewLogger("shop", good); err != nil || !log.Core().Enabled(zapcore.ErrorLevel) || log.Core().Enabled(zapcore.DebugLevel) != (good == "debug") {
			t.Errorf("%s: %v", good, err)
		}
	}
	_, err := NewLogger("shop", "loud")
	if err == nil || err.Error() != `LOG_LEVEL "loud" is none of debug, info, warn, error` {
		t.Error(err)
	}
}

// lines are the lines of a log, each read as JSON.
func lines(t *testing.T, out *bytes.Buffer) (all []map[string]any) {
	t.Helper()
	for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, fields)
	}
	return all
}

func TestALogIsLinesOfJSON(t *testing.T) {
	var out bytes.Buffer
	log := zap.New(LogCore(zapcore.AddSync(&out), zapcore.InfoLevel))
	log.Debug("unheard")
	log.Info("two\nlines", zap.Duration("took", 1500*time.Millisecond), zap.Int("n", 7))
	all := lines(t, &out)
	if len(all) != 1 {
		t.Fatalf("%d lines", len(all))
	}
	got := all[0]
	if got["msg"] != "two\nlines" || got["level"] != "info" || got["took"] != "1.5s" || got["n"] != 7.0 {
		t.Errorf("%v", got)
	}
	at, err := time.Parse(time.RFC3339Nano, got["time"].(string))
	if err != nil || time.Since(at).Abs() > time.Hour {
		t.Errorf("time %v", got["time"])
	}
}

// fixedClock has every line fall into the same second.
type fixedClock struct{ zapcore.Clock }

func (fixedClock) Now() time.Time { return time.Unix(1_800_000_000, 0) }

func TestAStormOfRequestsIsNotOneOfLogLines(t *testing.T) {
	var out bytes.Buffer
	log := zap.New(LogCore(zapcore.AddSync(&out), zapcore.InfoLevel), zap.WithClock(fixedClock{zapcore.DefaultClock}))
	for range 1100 {
		log.Info("request")
	}
	log.Info("another message")
	count := map[any]int{}
	for _, line := range lines(t, &out) {
		count[line["msg"]]++
	}
	if count["request"] != 100+10 || count["another message"] != 1 {
		t.Errorf("%v", count)
	}
}
