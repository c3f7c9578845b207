package service

import (
	"fmt"
	"net/netip"

	"partilha.dev/pkg/web"
)

// Limits are how much callers may ask of one replica, as the environment gives it.
type Limits struct {
	RateLimit         string         `env:"RATE_LIMIT" envDefault:"on"`               // off: nothing below limits anybody, for a benchmark
	PerSecond         int            `env:"RATE_LIMIT_PER_SECOND" envDefault:"1000"`  // calls of one key, each element of a batch counting as one
	Burst             int            `env:"RATE_LIMIT_BURST" envDefault:"2000"`       // the same, at once
	InFlight          int            `env:"RATE_LIMIT_IN_FLIGHT" envDefault:"64"`     // calls of one tenant under way; others wait a moment. Batches: one for every 64 of them, at least two
	Listeners         int            `env:"RATE_LIMIT_LISTENERS" envDefault:"32"`     // calls of one tenant that wait for what happens: streams of events, long polls
	FailuresPerSecond int            `env:"AUTH_FAILURES_PER_SECOND" envDefault:"10"` // calls from one address that show no valid key
	FailureBurst      int            `env:"AUTH_FAILURES_BURST" envDefault:"100"`     // the same, at once
	TrustedProxies    []netip.Prefix `env:"TRUSTED_PROXIES"`                          // CIDRs, separated by commas, whose X-Forwarded-For is believed
}

// Check refuses what limits nothing sensibly.
func (l Limits) Check() error {
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"RATE_LIMIT_PER_SECOND", l.PerSecond}, {"RATE_LIMIT_BURST", l.Burst}, {"RATE_LIMIT_IN_FLIGHT", l.InFlight},
		{"RATE_LIMIT_LISTENERS", l.Listeners}, {"AUTH_FAILURES_PER_SECOND", l.FailuresPerSecond}, {"AUTH_FAILURES_BURST", l.FailureBurst},
	} {
		if limit.value < 1 {
			return fmt.Errorf("%s is %d, which lets nobody in; to limit nobody set RATE_LIMIT=off", limit.name, limit.value)
		}
	}
	return checkSwitch("RATE_LIMIT", l.RateLimit)
}

// LimiterFor is what keeps these limits; nil, which limits nobody, unless they are on.
func LimiterFor(l Limits) *web.Limiter {
	if l.RateLimit != "on" {
		return nil
	}
	return web.NewLimiter(web.Limits{
		PerSecond: l.PerSecond, Burst: l.Burst, InFlight: l.InFlight, Listeners: l.Listeners,
		FailuresPerSecond: l.FailuresPerSecond, FailureBurst: l.FailureBurst, TrustedProxies: l.TrustedProxies,
	})
}
