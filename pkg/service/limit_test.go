package service

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
)

// usual are the limits where the environment says nothing.
var usual = Limits{RateLimit: "on", PerSecond: 1000, Burst: 2000, InFlight: 64, Listeners: 32, FailuresPerSecond: 10, FailureBurst: 100}

var limitVariables = []string{
	"RATE_LIMIT", "RATE_LIMIT_PER_SECOND", "RATE_LIMIT_BURST", "RATE_LIMIT_IN_FLIGHT", "RATE_LIMIT_LISTENERS", "AUTH_FAILURES_PER_SECOND", "AUTH_FAILURES_BURST", "TRUSTED_PROXIES",
}

func TestLimitsComeFromTheEnvironment(t *testing.T) {
	unset(t, limitVariables...)
	for i, value := range []string{"off", "1", "2", "3", "4", "5", "6", "10.0.0.0/8,2001:db8::/32"} {
		t.Setenv(limitVariables[i], value)
	}
	got, err := env.ParseAs[Limits]()
	if err != nil {
		t.Fatal(err)
	}
	want := Limits{
		RateLimit: "off", PerSecond: 1, Burst: 2, InFlight: 3, Listeners: 4, FailuresPerSecond: 5, FailureBurst: 6,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, proxies := range []string{"10.0.0.1", "10.0.0.0/33", "edge", "10.0.0.0/8;10.1.0.0/16"} {
		t.Setenv("TRUSTED_PROXIES", proxies)
		if _, err := env.ParseAs[Limits](); err == nil || !strings.Contains(err.Error(), "TrustedProxies") {
			t.Errorf("%s: %v", proxies, err)
		}
	}
	t.Setenv("TRUSTED_PROXIES", "")
	if got, err := env.ParseAs[Limits](); err != nil || len(got.TrustedProxies) != 0 {
		t.Errorf("nobody is trusted: %v %v", got, err)
	}
}

func TestALimitThatLetsNobodyInIsNamed(t *testing.T) {
	for name, change := range map[string]func(*Limits){
		"RATE_LIMIT_PER_SECOND": func(l *Limits) { l.PerSecond = 0 }, "RATE_LIMIT_BURST": func(l *Limits) { l.Burst = -1 },
		"RATE_LIMIT_IN_FLIGHT": func(l *Limits) { l.InFlight = 0 }, "RATE_LIMIT_LISTENERS": func(l *Limits) { l.Listeners = 0 },
		"AUTH_FAILURES_PER_SECOND": func(l *Limits) { l.FailuresPerSecond = 0 }, "AUTH_FAILURES_BURST": func(l *Limits) { l.FailureBurst = 0 },
	} {
		limits := usual
		change(&limits)
		if err := limits.Check(); err == nil || !strings.HasPrefix(err.Error(), name+" is ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := usual.Check(); err != nil {
		t.Error(err)
	}
}

func TestCallersAreLimitedUnlessThatIsOff(t *testing.T) {
	off := usual
	off.RateLimit = "off"
	if LimiterFor(off) != nil || LimiterFor(Limits{}) != nil {
		t.Error("off limits")
	}
	if LimiterFor(usual) == nil {
		t.Error("on does not limit")
	}
}
