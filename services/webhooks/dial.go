package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// errBlocked marks an attempt that the policy refused before a byte was sent.
var errBlocked = errors.New("target is blocked")

// refusedV4 are the IPv4 networks that lead inside, to a neighbour, or nowhere: the
// IANA special-purpose registry, multicast, reserved space, and the address at which
// Azure's host serves its virtual machines.
var refusedV4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
	"172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
)

// globalV6 is all of IPv6 that IANA has handed out for the public internet, and
// refusedV6 what is special within it: protocol assignments and Teredo,
// documentation, 6to4 and AS112. Whatever is not global (NAT64, unique local,
// link-local, multicast) is refused without being named.
var (
	globalV6  = netip.MustParsePrefix("2000::/3")
	refusedV6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")
)

func prefixes(cidrs ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(cidrs))
	for i, cidr := range cidrs {
		list[i] = netip.MustParsePrefix(cidr)
	}
	return list
}

// public reports whether addr belongs to the public internet. An address with a zone
// never does.
func public(addr netip.Addr) bool {
	if addr.Is4() {
		return !within(refusedV4, addr)
	}
	return globalV6.Contains(addr) && !within(refusedV6, addr)
}

func within(nets []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(nets, func(net netip.Prefix) bool { return net.Contains(addr) })
}

func (p targetPolicy) open(addr netip.Addr) bool { return within(p.OpenNets, addr.Unmap()) }

func (p targetPolicy) addrAllowed(addr netip.Addr) bool {
	addr = addr.Unmap()
	return public(addr) || within(p.AllowNets, addr) || within(p.OpenNets, addr)
}

// allowed returns nil where a connection to addr and port may be opened, else an
// error that wraps errBlocked. An IPv4 address inside an IPv6 one is judged as IPv4.
func (p targetPolicy) allowed(addr netip.Addr, port uint16) error {
	if !p.addrAllowed(addr) {
		return fmt.Errorf("%w: address %s", errBlocked, addr)
	}
	if !p.portAllowed(port) && !p.open(addr) {
		return fmt.Errorf("%w: port %d", errBlocked, port)
	}
	return nil
}

// lookupFunc resolves a name to all its addresses; net.DefaultResolver.LookupNetIP is one.
type lookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

const (
	// maxDialled bounds how many of a name's addresses one attempt knocks at.
	maxDialled = 8
	// dialStagger is the head start of each address over the next, so that a dead
	// IPv6 route does not eat the seconds of a delivery (RFC 8305 recommends 250 ms).
	dialStagger = 250 * time.Millisecond
)

// dialer opens connections for the sender, and only where the policy lets it.
type dialer struct {
	policy  targetPolicy
	lookup  lookupFunc
	timeout time.Duration // bounds lookup and connecting together
	net     net.Dialer
}

func newDialer(policy targetPolicy, timeout time.Duration, lookup lookupFunc) *dialer {
	d := &dialer{policy: policy, lookup: lookup, timeout: timeout}
	d.net.ControlContext = d.control
	return d
}

// dial resolves the host once, judges every address, and connects to one of the
// addresses that were judged; the name is not asked a second time.
//
// The error wraps errBlocked if the policy refused the target, is a *net.DNSError if
// the name could not be resolved, and a *net.OpError if nobody accepted.
func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	// The transport lets a dial outlive its request: without a bound of its own it
	// could knock for minutes.
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()

	host, rawPort, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("split address: %w", err)
	}
	port, err := parsePort(rawPort)
	if err != nil {
		return nil, fmt.Errorf("parse port %q: %w", rawPort, err)
	}
	addrs, err := d.resolve(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return d.connect(ctx, addrs[:min(len(addrs), maxDialled)], port)
}

// resolve returns at least one address, all of which may be dialled. One refused
// address among a name's answers refuses them all: a name that points both outside
// and inside is an attack or a mistake, and neither should work every other time.
func (d *dialer) resolve(ctx context.Context, host string, port uint16) ([]netip.Addr, error) {
	known, err := knownAddrs(host)
	if err != nil {
		return nil, fmt.Errorf("%w: host %q", errBlocked, host)
	}
	if len(known) > 0 {
		usable := slices.DeleteFunc(known, func(addr netip.Addr) bool { return d.policy.allowed(addr, port) != nil })
		if len(usable) == 0 {
			return nil, fmt.Errorf("%w: host %q, port %d", errBlocked, host, port)
		}
		return usable, nil
	}

	addrs, err := d.lookup(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("look up host: %w", err)
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	for _, addr := range addrs {
		if err := d.policy.allowed(addr, port); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// control judges the address of a socket at the last moment before it connects. It
// repeats what resolve has done, so that no change above it can open a way in.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: address %q", errBlocked, address)
	}
	return d.policy.allowed(target.Addr(), target.Port())
}

// connect returns the first connection that is accepted. Addresses are tried in their
// order, the next one when the last has failed or is late. If none accepts, the error
// is that of the first to fail.
func (d *dialer) connect(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(addrs))
	next := time.NewTimer(0)
	defer next.Stop()

	var failure error
	started, failed := 0, 0
	for {
		select {
		case <-next.C:
			if started == len(addrs) {
				continue
			}
			target := netip.AddrPortFrom(addrs[started].Unmap(), port).String()
			started++
			go func() {
				conn, err := d.net.DialContext(ctx, "tcp", target)
				results <- result{conn, err}
			}()
			next.Reset(dialStagger)
		case r := <-results:
			if r.err == nil {
				late := started - failed - 1
				go func() {
					for range late {
						if r := <-results; r.conn != nil {
							_ = r.conn.Close() // nothing was sent on it
						}
					}
				}()
				return r.conn, nil
			}
			if failed++; failed == 1 {
				failure = r.err
			}
			if failed == len(addrs) {
				return nil, failure
			}
			next.Reset(0)
		}
	}
}
