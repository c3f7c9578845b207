package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"partilha.dev/pkg/fault"
)

// stranger is the answer to a call that showed no valid key, which refusal says: that,
// or a 429 if too many such calls came from the same address. Who shows a valid key is
// never asked for an address, since many callers may share one.
func (l *Limiter) stranger(r *http.Request, header http.Header, refusal error) error {
	if l == nil {
		return refusal
	}
	left, taken := l.failures.take(l.addressOf(r), l.now(), 1, 1)
	if taken {
		return refusal
	}
	limited(header, "address", fmt.Sprintf("q=%d;w=1", l.limits.FailuresPerSecond), left, (1-left)/float64(l.limits.FailuresPerSecond))
	return fault.New(fault.Limited, "rate_limited", "too many calls from this address have shown no valid key; check the key, and wait as Retry-After says").Because(refusal)
}

// addressOf is from where a call comes: an IPv4 address, or the half of an IPv6 address
// that a network is given. That is the peer's, unless the peer is a trusted proxy. Then
// it is the last address in X-Forwarded-For that is not one; whoever asks may have
// written what stands further left.
func (l *Limiter) addressOf(r *http.Request) netip.Prefix {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // what is no address shares one bucket
	address := plainAddress(peer.Addr())
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !l.trusts(address) {
			break
		}
		before, ok := parseHop(strings.TrimSpace(hop))
		if !ok {
			break
		}
		address = before
	}
	if address.Is6() {
		return netip.PrefixFrom(address, 64).Masked()
	}
	return netip.PrefixFrom(address, 32)
}

func (l *Limiter) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(l.limits.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// parseHop reads an address that a proxy has added, which some write with a port.
func parseHop(text string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return plainAddress(withPort.Addr()), true
	}
	address, err := netip.ParseAddr(text)
	return plainAddress(address), err == nil
}

func plainAddress(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
