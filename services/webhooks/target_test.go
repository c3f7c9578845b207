package webhooks

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// localPolicy is what the local stack runs with.
var localPolicy = targetPolicy{OpenNets: loopback}

// codes returns the detail codes that a policy answers to a URL, each of which must
// point at /url and say what to do.
func codes(t *testing.T, p targetPolicy, raw string) []string {
	t.Helper()
	u, details := p.checkURL(raw)
	if (u == nil) != (len(details) > 0) {
		t.Errorf("checkURL(%.80q) = %v with details %v", raw, u, details)
	}
	var list []string
	for _, detail := range details {
		if detail.Path != "/url" || detail.Message == "" {
			t.Errorf("checkURL(%.80q): detail %+v", raw, detail)
		}
		list = append(list, detail.Code)
	}
	return list
}

func TestRegistrationTakes(t *testing.T) {
	for _, raw := range []string{
		"https://example.com",
		"https://example.com/",
		"https://example.com:443/hooks?source=partilha&x=%20",
		"https://example.com:8443/hooks",
		"HTTPS://Example.COM/hooks",
		"https://example.com./hooks",
		"https://xn--mnchen-3ya.de/",
		"https://under_score.example.com/",
		"https://1and1.com/",
		"https://8.8.8.8/",
		"https://[2606:4700:4700::1111]/",
		"https://[::ffff:8.8.8.8]/",
		"https://localhost.example.com/",
		"https://example.com/a/@b:22",
		"https://example.com/" + strings.Repeat("a", maxURLLength-len("https://example.com/")),
	} {
		if got := codes(t, targetPolicy{}, raw); got != nil {
			t.Errorf("checkURL(%.80q) = %v, want it taken", raw, got)
		}
	}
}

func TestRegistrationRefuses(t *testing.T) {
	for _, row := range []struct{ raw, code string }{
		// Addresses and localhost, in every spelling that some resolver understands.
		{"https://127.0.0.1/", "not_allowed"},
		{"https://127.1/", "format"},
		{"https://127.0.1/", "format"},
		{"https://2130706433/", "format"},
		{"https://0x7f000001/", "format"},
		{"https://0X7F000001/", "format"},
		{"https://0x7f.0.0.1/", "format"},
		{"https://127.0.0.0x1/", "format"},
		{"https://0x/", "format"},
		{"https://0177.0.0.1/", "format"},
		{"https://017700000001/", "format"},
		{"https://127.0.0.01/", "format"},
		{"https://127.0.0.1./", "format"},
		{"https://127.0.0.256/", "format"},
		{"https://8.8.8.8./", "format"},
		{"https://8.8.8.8.8/", "format"},
		{"https://example.1/", "format"},
		{"https://%31%32%37.0.0.1/", "format"},
		{"https://１２７.0.0.1/", "format"},
		{"https://127。0。0。1/", "format"},
		{"https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "format"},
		{"https://0.0.0.0/", "not_allowed"},
		{"https://10.0.0.1/", "not_allowed"},
		{"https://169.254.169.254/latest/meta-data/", "not_allowed"},
		{"https://168.63.129.16/", "not_allowed"},
		{"https://[::1]/", "not_allowed"},
		{"https://[::]/", "not_allowed"},
		{"https://[::127.0.0.1]/", "not_allowed"},
		{"https://[::ffff:169.254.169.254]/", "not_allowed"},
		{"https://[::ffff:7f00:1]/", "not_allowed"},
		{"https://[64:ff9b::a9fe:a9fe]/", "not_allowed"},
		{"https://[fd00:ec2::254]/", "not_allowed"},
		{"https://[fe80::1]/", "not_allowed"},
		{"https://[fe80::1%25eth0]/", "format"},
		{"https://[2606:4700::1%25eth0]/", "format"},
		{"https://[127.0.0.1]/", "format"},
		{"https://::1/", "format"},
		{"https://localhost/", "not_allowed"},
		{"https://LOCALHOST/", "not_allowed"},
		{"https://localhost./", "not_allowed"},
		{"https://api.localhost/", "not_allowed"},

		// What is not the scheme, the port or the shape of a webhook URL.
		{"http://example.com/", "not_allowed"},
		{"file:", "not_allowed"},
		{"file:///etc/passwd", "not_allowed"},
		{"ftp://example.com/", "not_allowed"},
		{"gopher://example.com/", "not_allowed"},
		{"javascript:alert(1)", "not_allowed"},
		{"https://example.com:22/", "not_allowed"},
		{"https://example.com:80/", "not_allowed"},
		{"https://8.8.8.8:22/", "not_allowed"},
		{"https://example.com:0/", "format"},
		{"https://example.com:0443/", "format"},
		{"https://example.com:65979/", "format"},
		{"https://example.com:https/", "format"},
		{"https://user@host/", "not_allowed"},
		{"https://user:password@example.com/", "not_allowed"},
		{"https://@example.com/", "not_allowed"},
		{`https://example.com\@8.8.8.8/`, "format"},
		{"https://example.com/#fragment", "not_allowed"},
		{"https://example.com/#", "not_allowed"},
		{"", "format"},
		{"example.com", "format"},
		{"//example.com/", "format"},
		{"https:", "format"},
		{"https:example.com", "format"},
		{"https://", "format"},
		{"https:///hooks", "format"},
		{"https://:443/", "format"},
		{"https://./", "format"},
		{"https://a..example.com/", "format"},
		{"https://-example.com/", "format"},
		{"https://exa*mple.com/", "format"},
		{"https://" + strings.Repeat("a", 64) + ".com/", "format"},
		{"https://" + strings.Repeat("a.", 126) + "com/", "format"},
		{"https://münchen.de/", "format"},
		{" https://example.com/", "format"},
		{"https://example.com/?a=1 HTTP/1.1", "format"},
		{"https://example.com/\r\nX-Injected: 1", "format"},
		{"https://example.com/\x00", "format"},
		{"https://example.com/\xff", "format"},
		{"https://example.com/" + strings.Repeat("a", maxURLLength), "too_long"},
	} {
		if got := codes(t, targetPolicy{}, row.raw); !slices.Equal(got, []string{row.code}) {
			t.Errorf("checkURL(%.80q) = %v, want exactly %s", row.raw, got, row.code)
		}
	}
}

func TestRegistrationNamesEveryIssueAtOnce(t *testing.T) {
	_, details := targetPolicy{}.checkURL("http://user@127.0.0.1:22/#x")
	if len(details) != 5 {
		t.Errorf("user info, fragment, address, scheme and port gave %d details: %v", len(details), details)
	}
}

func TestTheLocalStackOpensLoopbackAndNothingElse(t *testing.T) {
	for _, raw := range []string{
		"http://127.0.0.1/", "http://127.0.0.1:9000/hook", "https://127.0.0.1:9000/",
		"http://127.255.255.254:1/", "http://[::1]:9000/", "http://[::ffff:127.0.0.1]:9000/",
		"http://localhost:9000/", "http://receiver.localhost:9000/",
		"https://example.com/",
	} {
		if got := codes(t, localPolicy, raw); got != nil {
			t.Errorf("checkURL(%q) = %v, want it taken", raw, got)
		}
	}
	for _, raw := range []string{
		"http://example.com/", "http://example.com:8443/", "https://example.com:9000/", "http://8.8.8.8:443/", "https://8.8.8.8:22/",
		"https://10.0.0.1/", "http://192.168.0.1:9000/", "https://169.254.169.254/", "https://0.0.0.0/",
		"https://[::2]/", "https://user@127.0.0.1/", "http://127.1:9000/",
	} {
		if got := codes(t, localPolicy, raw); got == nil {
			t.Errorf("checkURL(%q) was taken", raw)
		}
	}
}

func TestConfiguredExceptions(t *testing.T) {
	ports := func(raw string) portSet {
		set, err := parsePorts(raw)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	inside := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	for _, row := range []struct {
		name   string
		policy targetPolicy
		raw    string
		taken  bool
	}{
		{"http where it is allowed", targetPolicy{AllowHTTP: true}, "http://example.com/", true},
		{"http does not open other ports", targetPolicy{AllowHTTP: true}, "http://example.com:8080/", false},
		{"http does not open addresses", targetPolicy{AllowHTTP: true}, "http://127.0.0.1/", false},
		{"a listed port", targetPolicy{Ports: ports("443, 9443")}, "https://example.com:9443/", true},
		{"a list replaces the default", targetPolicy{Ports: ports("9443")}, "https://example.com/", false},
		{"a list says all about http as well", targetPolicy{AllowHTTP: true, Ports: ports("443")}, "http://example.com/", false},
		{"every port", targetPolicy{Ports: ports("*")}, "https://example.com:22/", true},
		{"every port does not open addresses", targetPolicy{Ports: ports("*")}, "https://127.0.0.1:22/", false},
		{"an allowed net", targetPolicy{AllowNets: inside}, "https://10.1.255.255/", true},
		{"not its neighbour", targetPolicy{AllowNets: inside}, "https://10.2.0.0/", false},
		{"an allowed net does not open http", targetPolicy{AllowNets: inside}, "http://10.1.0.1/", false},
		{"an allowed net does not open ports", targetPolicy{AllowNets: inside}, "https://10.1.0.1:22/", false},
		{"localhost, where only one of its addresses is allowed",
			targetPolicy{AllowNets: loopback[:1]}, "https://localhost/", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := codes(t, row.policy, row.raw); (got == nil) != row.taken {
				t.Errorf("checkURL(%q) = %v, want taken: %v", row.raw, got, row.taken)
			}
		})
	}
}

func TestParsePortsRefusesWhatIsNotAPort(t *testing.T) {
	for _, raw := range []string{"0", "65536", "-1", "https", "443,", "443;8443", "*,443", "0443"} {
		if set, err := parsePorts(raw); err == nil {
			t.Errorf("parsePorts(%q) = %v", raw, set)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://example.com/", "https://127.1/", "https://[::1%25x]:443/", "https://a@b:22/#c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, details := targetPolicy{}.checkURL(raw)
		if len(details) > 0 {
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Errorf("took %q as %v", raw, u)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil && !public(addr.Unmap()) {
			t.Errorf("took %q, which leads to %s", raw, addr)
		}
	})
}
