package service

import (
	"net/netip"

	"partilha.dev/pkg/web"
)

// Limits are how much callers may ask of one replica, as the environment gives it.
type Limits struct {
	RateLimit         string         `env:"RATE_LIMIT" envDefault:"on" allow:"on|off"`                   // off: no limit of calls holds, for a benchmark
	PerSecond         int            `env:"RATE_LIMIT_PER_SECOND" envDefault:"1000" allow:"1..1000000"`  // calls of one key, each element of a batch counting as one
	Burst             int            `env:"RATE_LIMIT_BURST" envDefault:"2000" allow:"1..1000000"`       // calls of one key at once
	InFlight          int            `env:"RATE_LIMIT_IN_FLIGHT" envDefault:"64" allow:"1..1000000"`     // calls of one tenant under way; others wait a moment. Batches: one for every 64 of them, at least two
	Listeners         int            `env:"RATE_LIMIT_LISTENERS" envDefault:"32" allow:"1..1000000"`     // calls of one tenant that wait for what happens: streams of events, long polls
	FailuresPerSecond int            `env:"AUTH_FAILURES_PER_SECOND" envDefault:"10" allow:"1..1000000"` // calls from one address that show no valid key
	FailureBurst      int            `env:"AUTH_FAILURES_BURST" envDefault:"100" allow:"1..1000000"`     // calls from one address at once that show no valid key
	TrustedProxies    []netip.Prefix `env:"TRUSTED_PROXIES" allow:"networks"`                            // of proxies whose X-Forwarded-For is believed
}

// LimiterFor is what keeps these limits where calls share so many connections to the
// database; nil, which limits nobody, unless they are on.
func LimiterFor(l Limits, connections int) *web.Limiter {
	if l.RateLimit != "on" {
		return nil
	}
	return web.NewLimiter(web.Limits{
		PerSecond: l.PerSecond, Burst: l.Burst, InFlight: l.InFlight, Listeners: l.Listeners, Connections: connections,
		FailuresPerSecond: l.FailuresPerSecond, FailureBurst: l.FailureBurst, TrustedProxies: l.TrustedProxies,
	})
}
