package web

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/auth"
)

// from makes a call from a peer, with these values of X-Forwarded-For.
func (s *shop) from(peer, authorization string, forwarded ...string) answer {
	s.t.Helper()
	r := httptest.NewRequest("GET", "/api/v1/things", nil)
	r.RemoteAddr = peer
	r.Header.Set("Authorization", authorization)
	r.Header["X-Forwarded-For"] = forwarded
	return s.send(r)
}

func TestWhoTriesManyKeysIsToldToWait(t *testing.T) {
	s := newShop(t)
	unknown, _, _, err := auth.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	const guesser, neighbour = "203.0.113.7:5000", "203.0.113.8:5000"
	wrong := []string{"", "Bearer x", "Bearer " + unknown, "Bearer " + s.key[:len(s.key)-1]}
	for n := range usual.FailureBurst {
		s.from(guesser, wrong[n%len(wrong)]).refused("a guess", 401, "unauthorized")
	}
	for _, authorization := range wrong {
		a := s.from(strings.Replace(guesser, "5000", "5001", 1), authorization)
		a.refused("one guess more", 429, "rate_limited")
		for header, want := range map[string]string{"Retry-After": "1", "RateLimit-Policy": `"address";q=10;w=1`, "RateLimit": `"address";r=0;t=1`, "WWW-Authenticate": ""} {
			if got := a.header.Get(header); got != want {
				t.Errorf("%s %q, want %q", header, got, want)
			}
		}
	}
	if a := s.from(guesser, "Bearer "+s.key); a.status != 200 {
		t.Errorf("a valid key from the same address is answered %d %s", a.status, a.body)
	}
	s.from(neighbour, "").refused("from the next address", 401, "unauthorized")
	s.forward(time.Second)
	for range usual.FailuresPerSecond {
		s.from(guesser, "").refused("after a second", 401, "unauthorized")
	}
	s.from(guesser, "").refused("and no more", 429, "rate_limited")
}

func TestGuessingTheOperatorsTokenCounts(t *testing.T) {
	s := newShop(t)
	guess := func() answer { return s.call("POST", "/admin/v1/things", "{}", "Authorization", "Bearer x") }
	for range usual.FailureBurst {
		guess().refused("a guess", 401, "unauthorized")
	}
	guess().refused("one more", 429, "rate_limited")
	if a := s.call("POST", "/admin/v1/things", `{"name":"x"}`, "Authorization", "Bearer "+operatorToken); a.status != 201 {
		t.Errorf("the operator from the same address is answered %d %s", a.status, a.body)
	}
}

func TestAKeyThatMayNotIsNoGuess(t *testing.T) {
	s := newShop(t)
	narrow := s.issue(func(k *auth.Key) { k.Scopes = auth.Scopes{auth.GoalsRead} })
	suspended := s.issue(func(k *auth.Key) { k.Suspended = true })
	for range usual.FailureBurst + 1 {
		s.from("203.0.113.7:1", "Bearer "+narrow).refused("without the scope", 403, "insufficient_scope")
		s.from("203.0.113.7:1", "Bearer "+suspended).refused("suspended", 403, "tenant_suspended")
	}
}

func TestTheCallersAddressIsThePeersUnlessATrustedProxySaysMore(t *testing.T) {
	limits := usual
	limits.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	l := NewLimiter(limits)
	for _, c := range []struct {
		about, peer string
		forwarded   []string
		want        string
	}{
		{"a peer", "203.0.113.7:80", nil, "203.0.113.7/32"},
		{"an IPv4 peer on an IPv6 socket", "[::ffff:203.0.113.7]:80", nil, "203.0.113.7/32"},
		{"an IPv6 peer", "[2001:db8:9:8:7:6:5:4]:80", nil, "2001:db8:9:8::/64"},
		{"its neighbour in one network", "[2001:db8:9:8::1]:80", nil, "2001:db8:9:8::/64"},
		{"an IPv6 peer with a zone", "[fe80::1%eth0]:80", nil, "fe80::/64"},
		{"a peer that claims to be another", "203.0.113.7:80", []string{"198.51.100.1"}, "203.0.113.7/32"},
		{"through a proxy", "10.1.2.3:80", []string{"198.51.100.1"}, "198.51.100.1/32"},
		{"through a proxy on an IPv6 socket", "[::ffff:10.1.2.3]:80", []string{"198.51.100.1"}, "198.51.100.1/32"},
		{"through an IPv6 proxy", "[2001:db8:1::1]:80", []string{"2001:db8:9:8:7:6:5:4"}, "2001:db8:9:8::/64"},
		{"a claim before what the proxy added", "10.1.2.3:80", []string{"192.0.2.9, 198.51.100.1"}, "198.51.100.1/32"},
		{"a claim in a header of its own", "10.1.2.3:80", []string{"192.0.2.9", "198.51.100.1"}, "198.51.100.1/32"},
		{"a claim to be a proxy", "10.1.2.3:80", []string{"192.0.2.9, 10.9.9.9, 198.51.100.1"}, "198.51.100.1/32"},
		{"through two proxies", "10.1.2.3:80", []string{"192.0.2.9, 198.51.100.1 ,10.9.9.9"}, "198.51.100.1/32"},
		{"with ports", "10.1.2.3:80", []string{"198.51.100.1:4711"}, "198.51.100.1/32"},
		{"with a port and brackets", "10.1.2.3:80", []string{"[2001:db8:9:8::4]:4711"}, "2001:db8:9:8::/64"},
		{"from the proxy itself", "10.1.2.3:80", nil, "10.1.2.3/32"},
		{"proxies all the way", "10.1.2.3:80", []string{"10.7.7.7, 10.8.8.8"}, "10.7.7.7/32"},
		{"something that is no address", "10.1.2.3:80", []string{"198.51.100.1, unknown"}, "10.1.2.3/32"},
		{"nothing", "10.1.2.3:80", []string{""}, "10.1.2.3/32"},
		{"many commas", "10.1.2.3:80", []string{strings.Repeat(",", 10_000)}, "10.1.2.3/32"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		if got := l.addressOf(r).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.about, got, c.want)
		}
	}
}

func TestAPeerWithoutAnAddressIsLimitedAsWell(t *testing.T) {
	s := newShop(t)
	for range usual.FailureBurst {
		s.from("@", "").refused("a guess", 401, "unauthorized")
	}
	s.from("pipe", "").refused("one more", 429, "rate_limited")
}

func TestGuessesFromEverywhereTakeABoundedMemory(t *testing.T) {
	l, forward := still(usual)
	r := httptest.NewRequest("GET", "/", nil)
	for n := range maxBuckets + 1000 {
		r.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:80", n>>16, n&0xffff)
		if err := l.stranger(r, r.Header, auth.Unauthorized()); err != auth.Unauthorized() {
			t.Fatal(err)
		}
	}
	if n := len(l.failures.of); n != maxBuckets {
		t.Errorf("%d addresses are remembered, want %d", n, maxBuckets)
	}
	forward(2 * time.Minute)
	l.stranger(r, r.Header, auth.Unauthorized())
	if n := len(l.failures.of); n != 1 {
		t.Errorf("%d addresses are remembered after two minutes, want 1", n)
	}
}
