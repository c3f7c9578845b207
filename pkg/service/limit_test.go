package service

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// usual are the limits where the environment says nothing.
var usual = Limits{RateLimit: "on", PerSecond: 1000, Burst: 2000, InFlight: 64, Listeners: 32, FailuresPerSecond: 10, FailureBurst: 100}

var limitVariables = []string{
	"RATE_LIMIT", "RATE_LIMIT_PER_SECOND", "RATE_LIMIT_BURST", "RATE_LIMIT_IN_FLIGHT", "RATE_LIMIT_LISTENERS", "AUTH_FAILURES_PER_SECOND", "AUTH_FAILURES_BURST", "TRUSTED_PROXIES",
}

func TestLimitsComeFromTheEnvironment(t *testing.T) {
	clean(t, Limits{})
	for i, value := range []string{"off", "1", "2", "3", "4", "5", "6", "10.0.0.0/8, 2001:db8::/32"} {
		t.Setenv(limitVariables[i], value)
	}
	var got Limits
	if err := ReadEnvironment(&got); err != nil {
		t.Fatal(err)
	}
	want := Limits{
		RateLimit: "off", PerSecond: 1, Burst: 2, InFlight: 3, Listeners: 4, FailuresPerSecond: 5, FailureBurst: 6,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestALimitThatLetsNobodyInIsNamed(t *testing.T) {
	for _, name := range limitVariables[1:7] {
		for _, nobody := range []string{"0", "-1"} {
			clean(t, Limits{})
			t.Setenv(name, nobody)
			if err := ReadEnvironment(new(Limits)); err == nil || !strings.HasPrefix(err.Error(), name+" ") {
				t.Errorf("%s=%s: %v", name, nobody, err)
			}
		}
	}
}

func TestCallersAreLimitedUnlessThatIsOff(t *testing.T) {
	off := usual
	off.RateLimit = "off"
	if LimiterFor(off, 16) != nil || LimiterFor(Limits{}, 16) != nil {
		t.Error("off limits")
	}
	if LimiterFor(usual, 16) == nil {
		t.Error("on does not limit")
	}
}
