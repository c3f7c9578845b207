package service

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// write puts content into a file and returns its path.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// unset removes variables for one test.
func unset(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
}

func TestTheDatabaseIsAllThatMustBeConfigured(t *testing.T) {
	unset(t, "DATABASE_POOL", "NATS_URL", "NATS_REPLICAS", "ADDR", "LOG_LEVEL", "MIGRATE")
	unset(t, limitVariables...)
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
	if err := got.check(); err != nil {
		t.Error(err)
	}

	for _, missing := range []func(){func() { t.Setenv("DATABASE_URL", "") }, func() { os.Unsetenv("DATABASE_URL") }} {
		missing()
		if err := ReadEnvironment(&got); err == nil || !strings.Contains(err.Error(), "DATABASE_URL") {
			t.Errorf("without a database: %v", err)
		}
	}
}

func TestASecretMayComeFromAFile(t *testing.T) {
	var config struct {
		Database string `env:"DATABASE_URL"`
		Admin    string `env:"ADMIN_TOKEN"`
		NATS     string `env:"NATS_URL"`
		Webhooks string `env:"WEBHOOKS_SECRET_KEY"`
		PixKeys  string `env:"COMMISSIONS_SECRET_KEY"`
		Other    string `env:"OTHER"`
	}
	unset(t, secretVariables...)
	for name, content := range map[string]string{
		"DATABASE_URL": "postgres://two\n", "ADMIN_TOKEN": " kept as it is \r\n\n", "NATS_URL": "nats://a,nats://b", "WEBHOOKS_SECRET_KEY": "line\nbreak\n",
		"COMMISSIONS_SECRET_KEY": "pix\n", "OTHER": "x",
	} {
		t.Setenv(name+"_FILE", write(t, content))
	}
	if err := ReadEnvironment(&config); err != nil {
		t.Fatal(err)
	}
	if config.Database != "postgres://two" || config.Admin != " kept as it is " || config.NATS != "nats://a,nats://b" || config.Webhooks != "line\nbreak" || config.PixKeys != "pix" || config.Other != "" {
		t.Errorf("%+v", config)
	}
}

func TestASecretIsGivenOnce(t *testing.T) {
	var config struct {
		Admin string `env:"ADMIN_TOKEN"`
	}
	t.Setenv("ADMIN_TOKEN", "hunter2")
	t.Setenv("ADMIN_TOKEN_FILE", write(t, "hunter3"))
	err := ReadEnvironment(&config)
	if err == nil || err.Error() != "set ADMIN_TOKEN or ADMIN_TOKEN_FILE, not both" {
		t.Error(err)
	}
	os.Unsetenv("ADMIN_TOKEN")
	t.Setenv("ADMIN_TOKEN_FILE", filepath.Join(t.TempDir(), "absent"))
	if err := ReadEnvironment(&config); err == nil || !strings.Contains(err.Error(), "read ADMIN_TOKEN_FILE") {
		t.Error(err)
	}
}

func TestANumberThatIsNoneIsRefused(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://one")
	t.Setenv("DATABASE_POOL", "many")
	var config Config
	if err := ReadEnvironment(&config); err == nil || !strings.Contains(err.Error(), "DatabasePool") {
		t.Error(err)
	}
}

func TestASwitchIsOnOrOff(t *testing.T) {
	for _, c := range []struct{ migrate, limit, want string }{
		{"on", "off", ""}, {"off", "on", ""}, {"true", "on", `MIGRATE "true" is neither on nor off`}, {"ON", "on", `MIGRATE "ON"`},
		{"off", "false", `RATE_LIMIT "false" is neither on nor off`}, {"off", "", `RATE_LIMIT ""`},
	} {
		config := Config{Migrate: c.migrate, Limits: usual}
		config.RateLimit = c.limit
		err := config.check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q, %q: %v", c.migrate, c.limit, err)
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
