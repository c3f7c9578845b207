package webhooks

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"partilha.dev/pkg/fault"
)

// targetPolicy says where a webhook may be sent. It is asked twice: checkURL when an
// endpoint is registered and before each delivery, allowed for every address about
// to be dialled. The zero value is the strict one: https to public addresses on
// ports 443 and 8443.
type targetPolicy struct {
	// AllowHTTP lets every URL use plain http (WEBHOOKS_ALLOW_HTTP).
	AllowHTTP bool
	// Ports are the ports that every URL may name (WEBHOOKS_PORTS).
	Ports portSet
	// AllowNets opens addresses that are otherwise refused (WEBHOOKS_ALLOW_NETS).
	// Scheme and port of such a target are judged like any other's.
	AllowNets []netip.Prefix
	// OpenNets are reached over http and on every port as well, whatever the members
	// above say. The local stack opens loopback here; nothing else should.
	OpenNets []netip.Prefix
}

// loopback is what the local stack opens: this machine and nothing else.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// portSet is a choice of TCP ports. The zero value means "not configured": 443 and
// 8443, and also 80 where the policy allows http everywhere.
type portSet struct {
	any  bool
	list []uint16
}

// parsePorts reads WEBHOOKS_PORTS: "" (not configured), "*" (every port) or a list
// such as "443,8443". Anything else is an error that names the offending element.
func parsePorts(raw string) (portSet, error) {
	switch strings.TrimSpace(raw) {
	case "":
		return portSet{}, nil
	case "*":
		return portSet{any: true}, nil
	}
	var set portSet
	for element := range strings.SplitSeq(raw, ",") {
		port, err := parsePort(strings.TrimSpace(element))
		if err != nil {
			return portSet{}, fmt.Errorf("parse port %q: %w", element, err)
		}
		set.list = append(set.list, port)
	}
	return set, nil
}

func (p targetPolicy) portAllowed(port uint16) bool {
	switch {
	case p.Ports.any:
		return true
	case len(p.Ports.list) > 0:
		return slices.Contains(p.Ports.list, port)
	default:
		return port == 443 || port == 8443 || port == 80 && p.AllowHTTP
	}
}

// maxURLLength bounds a registered URL, in code points.
const maxURLLength = 2048

// checkURL judges a URL as far as it can be seen, and resolves no name: what a name
// stands for is judged when it is dialled. It returns the parsed URL, or every issue
// at once with the path /url.
//
// It is stricter than url.Parse, so that no two readers of a URL can disagree on
// where it leads: printable ASCII only, no user info, no fragment, and an IPv4
// address in no other spelling than four canonical decimal numbers.
func (p targetPolicy) checkURL(raw string) (*url.URL, []fault.Detail) {
	u, issue := parseURL(raw)
	if issue != nil {
		return nil, []fault.Detail{*issue}
	}

	var issues []fault.Detail
	refuse := func(code, message string) { issues = append(issues, urlIssue(code, message)) }
	if u.User != nil {
		refuse("not_allowed", "leave out the user name and password")
	}
	if strings.Contains(raw, "#") {
		refuse("not_allowed", "leave out the fragment (everything from # on)")
	}
	addrs, hostErr := knownAddrs(u.Hostname())
	if hostErr != nil {
		refuse("format", hostErr.Error())
	}
	if len(addrs) > 0 && !slices.ContainsFunc(addrs, p.addrAllowed) {
		refuse("not_allowed", "use a host that is reachable from the public internet")
	}
	open := slices.ContainsFunc(addrs, p.open)
	httpRefused := u.Scheme == "http" && !p.AllowHTTP && !open
	if httpRefused {
		refuse("not_allowed", "use https")
	}
	port, portErr := targetPort(u)
	switch {
	case portErr != nil:
		refuse("format", portErr.Error())
	case httpRefused && u.Port() == "": // https brings its own port
	case !p.portAllowed(port) && !open:
		refuse("not_allowed", "use a port that webhooks are sent to, such as 443 or 8443")
	}
	if len(issues) > 0 {
		return nil, issues
	}
	return u, nil
}

// parseURL reads an absolute http or https URL with a host.
func parseURL(raw string) (*url.URL, *fault.Detail) {
	fail := func(code, message string) (*url.URL, *fault.Detail) {
		issue := urlIssue(code, message)
		return nil, &issue
	}
	if utf8.RuneCountInString(raw) > maxURLLength {
		return fail("too_long", fmt.Sprintf("at most %d characters", maxURLLength))
	}
	// A blank in a query would go out unescaped and break the request line; a letter
	// beyond ASCII in a host may be folded into a digit or a dot on its way to DNS.
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fail("format", "percent-encode blanks and letters beyond ASCII; write an international host name in its xn-- form")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme == "":
		return fail("format", "write an absolute URL, such as https://example.com/webhooks")
	case u.Scheme != "https" && u.Scheme != "http":
		return fail("not_allowed", "use https")
	case u.Opaque != "" || u.Hostname() == "":
		return fail("format", "name a host, such as https://example.com/webhooks")
	}
	return u, nil
}

func urlIssue(code, message string) fault.Detail {
	return fault.Detail{Path: "/url", Code: code, Message: message}
}

// targetPort returns the port that u names, or its scheme's own.
func targetPort(u *url.URL) (uint16, error) {
	switch {
	case u.Port() != "":
		return parsePort(u.Port())
	case u.Scheme == "http":
		return 80, nil
	default:
		return 443, nil
	}
}

func parsePort(raw string) (uint16, error) {
	port, err := strconv.ParseUint(raw, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != raw {
		return 0, errors.New("write the port as a number from 1 to 65535")
	}
	return uint16(port), nil
}

// knownAddrs returns the addresses that host means without DNS being asked: the one of
// a literal, or the two of localhost and of every name below it, either of which will
// do. Any other name has none. The error tells whoever registers the URL what to write.
func knownAddrs(host string) ([]netip.Addr, error) {
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return nil, errors.New("write an IPv6 address without a zone")
		}
		return []netip.Addr{addr.Unmap()}, nil
	}

	name := strings.ToLower(strings.TrimSuffix(host, "."))
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	switch {
	case isNumber(last):
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is4() {
			return nil, errors.New("write an IPv4 address as four decimal numbers, such as 198.41.0.4")
		}
		return []netip.Addr{addr}, nil
	case len(name) > 253 || slices.ContainsFunc(labels, malformedLabel):
		return nil, errors.New("write a host name of letters, digits, hyphens and dots")
	case last == "localhost":
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return nil, nil
}

// isNumber reports whether a resolver could take a host that ends in this label for
// an IPv4 address: no top-level domain is a number, decimal or hexadecimal.
func isNumber(label string) bool {
	digits, set := label, "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		digits, set = hex, "0123456789abcdef"
	} else if label == "" {
		return false
	}
	return strings.Trim(digits, set) == ""
}

// malformedLabel also takes the underscore, which internal names do contain.
func malformedLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return true
	}
	return strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != ""
}
