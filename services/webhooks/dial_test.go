package webhooks

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Every row is a refused network with its two ends, and the neighbours outside it
// where those are public ("" where they are refused for another reason).
var refusedNetworks = []struct{ cidr, first, last, before, after string }{
	{"0/8", "0.0.0.0", "0.255.255.255", "", "1.0.0.0"},
	{"10/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"},
	{"100.64/10", "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"},
	{"127/8", "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"},
	{"169.254/16", "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"},
	{"172.16/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"},
	{"192.0.0/24", "192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"},
	{"192.0.2/24", "192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"},
	{"192.31.196/24", "192.31.196.0", "192.31.196.255", "192.31.195.255", "192.31.197.0"},
	{"192.52.193/24", "192.52.193.0", "192.52.193.255", "192.52.192.255", "192.52.194.0"},
	{"192.88.99/24", "192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"},
	{"192.168/16", "192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"},
	{"192.175.48/24", "192.175.48.0", "192.175.48.255", "192.175.47.255", "192.175.49.0"},
	{"198.18/15", "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"},
	{"198.51.100/24", "198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"},
	{"203.0.113/24", "203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"},
	{"224/4", "224.0.0.0", "239.255.255.255", "223.255.255.255", ""},
	{"240/4", "240.0.0.0", "255.255.255.255", "", ""},
	{"Azure's host", "168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17"},
	{"below 2000::/3", "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", "2000::"},
	{"2001::/23", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"},
	{"2001:db8::/32", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"},
	{"2002::/16", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"},
	{"3fff::/20", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"},
	{"2620:4f:8000::/48", "2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "2620:4f:8001::"},
	{"above 2000::/3", "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	{"loopback", "::1", "::1", "", ""},
	{"v4-compatible", "::7f00:1", "::808:808", "", ""},
	{"v4-translated", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "", ""},
	{"unique local", "fc00::", "fd00:ec2::254", "", ""},
	{"link-local", "fe80::1", "fe80::1%eth0", "", ""},
	{"a public address with a zone", "2606:4700::1%eth0", "2606:4700::1%eth0", "", "2606:4700::1"},
}

func TestEveryRefusedNetworkEndsWhereItShould(t *testing.T) {
	for _, row := range refusedNetworks {
		t.Run(row.cidr, func(t *testing.T) {
			judge := func(text string, want bool) {
				t.Helper()
				if text == "" {
					return
				}
				addr := netip.MustParseAddr(text)
				spellings := []netip.Addr{addr}
				if addr.Is4() {
					spellings = append(spellings, netip.AddrFrom16(addr.As16()))
				}
				for _, spelling := range spellings {
					err := targetPolicy{}.allowed(spelling, 443)
					if (err == nil) != want || err != nil && !errors.Is(err, errBlocked) {
						t.Errorf("allowed(%s) = %v, want it allowed: %v", spelling, err, want)
					}
				}
			}
			judge(row.first, false)
			judge(row.last, false)
			judge(row.before, true)
			judge(row.after, true)
		})
	}
}

func TestAnInvalidAddressIsRefused(t *testing.T) {
	if (targetPolicy{}).allowed(netip.Addr{}, 443) == nil {
		t.Error("the zero address was allowed")
	}
}

func TestAPortIsJudgedWithItsAddress(t *testing.T) {
	public, private := netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("127.0.0.1")
	if (targetPolicy{}).allowed(public, 22) == nil {
		t.Error("port 22 was allowed")
	}
	if localPolicy.allowed(public, 22) == nil {
		t.Error("the exception for loopback opened a port elsewhere")
	}
	if err := localPolicy.allowed(private, 22); err != nil {
		t.Errorf("the local stack refused a port of loopback: %v", err)
	}
}

// listen opens a port on one loopback address; port 0 takes a free one.
func listen(t *testing.T, host string, port uint16) (*net.TCPListener, uint16) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener, listener.Addr().(*net.TCPAddr).AddrPort().Port()
}

// mustBeUntouched fails if anybody has connected to the listener. Connections queue in
// their order, so the first to be accepted has to be the one made here.
func mustBeUntouched(t *testing.T, listener *net.TCPListener) {
	t.Helper()
	marker, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer marker.Close()
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if first.RemoteAddr().String() != marker.LocalAddr().String() {
		t.Errorf("%s was connected to", listener.Addr())
	}
}

// answers is a resolver that gives the next list of addresses each time it is asked,
// and the last one for ever.
func answers(lists ...[]string) lookupFunc {
	asked := 0
	return func(context.Context, string, string) ([]netip.Addr, error) {
		list := lists[min(asked, len(lists)-1)]
		asked++
		var addrs []netip.Addr
		for _, text := range list {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
		return addrs, nil
	}
}

// outsidePolicy lets 127.0.0.2 and 127.0.0.3 stand for two public addresses, so that
// 127.0.0.1 can stand for a private one.
var outsidePolicy = targetPolicy{
	AllowHTTP: true,
	Ports:     portSet{any: true},
	AllowNets: prefixes("127.0.0.2/32", "127.0.0.3/32"),
}

func dialName(d *dialer, port uint16) (net.Conn, error) {
	return d.dial(context.Background(), "tcp", net.JoinHostPort("shop.example", strconv.Itoa(int(port))))
}

func TestOneRefusedAnswerBlocksThemAll(t *testing.T) {
	private, port := listen(t, "127.0.0.1", 0)
	public, _ := listen(t, "127.0.0.2", port)
	for _, list := range [][]string{
		{"127.0.0.2", "127.0.0.1"},
		{"127.0.0.1", "127.0.0.2"},
		{"127.0.0.2", "::ffff:127.0.0.1"},
		{"127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.2", "::1"},
	} {
		conn, err := dialName(newDialer(outsidePolicy, time.Minute, answers(list)), port)
		if conn != nil || !errors.Is(err, errBlocked) {
			t.Errorf("dial of %v: %v, %v", list, conn, err)
		}
	}
	mustBeUntouched(t, public)
	mustBeUntouched(t, private)
}

func TestANameIsAskedOnceForEachConnection(t *testing.T) {
	private, port := listen(t, "127.0.0.1", 0)
	listen(t, "127.0.0.2", port)
	d := newDialer(outsidePolicy, time.Minute, answers([]string{"127.0.0.2"}, []string{"127.0.0.1"}))

	conn, err := dialName(d, port)
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.RemoteAddr().(*net.TCPAddr).IP.String(); got != "127.0.0.2" {
		t.Errorf("connected to %s, which was not the address judged", got)
	}
	_ = conn.Close()

	if _, err := dialName(d, port); !errors.Is(err, errBlocked) {
		t.Errorf("dial after the name changed its mind: %v", err)
	}
	mustBeUntouched(t, private)
}

func TestASocketIsJudgedOnceMoreAsItConnects(t *testing.T) {
	private, port := listen(t, "127.0.0.1", 0)
	d := newDialer(outsidePolicy, time.Minute, answers([]string{"127.0.0.2"}))
	_, err := d.connect(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1")}, port)
	if !errors.Is(err, errBlocked) {
		t.Errorf("connect to an address that nobody judged: %v", err)
	}
	mustBeUntouched(t, private)
}

func TestLiteralsAndLocalhostNeverReachTheResolver(t *testing.T) {
	private, port := listen(t, "127.0.0.1", 0)
	fooled := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		t.Errorf("the resolver was asked for %s", host)
		return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
	}
	d := newDialer(outsidePolicy, time.Minute, fooled)
	for _, host := range []string{"127.0.0.1", "127.1", "2130706433", "0x7f000001", "::1", "::ffff:127.0.0.1", "::1%lo", "localhost", "a.localhost."} {
		_, err := d.dial(t.Context(), "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
		if !errors.Is(err, errBlocked) {
			t.Errorf("dial %s: %v", host, err)
		}
	}
	mustBeUntouched(t, private)
}

func TestADeadAddressDoesNotHideALiveOne(t *testing.T) {
	_, port := listen(t, "127.0.0.3", 0)
	both := answers([]string{"127.0.0.2", "127.0.0.3"})
	mustReachTheSecond := func(t *testing.T, d *dialer) {
		t.Helper()
		conn, err := dialName(d, port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := conn.RemoteAddr().(*net.TCPAddr).IP.String(); got != "127.0.0.3" {
			t.Errorf("connected to %s", got)
		}
	}
	t.Run("when it refuses", func(t *testing.T) {
		mustReachTheSecond(t, newDialer(outsidePolicy, time.Minute, both))
	})
	t.Run("when it never answers", func(t *testing.T) {
		d := newDialer(outsidePolicy, time.Minute, both)
		d.net.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
			if target := netip.MustParseAddrPort(address); target.Addr().String() == "127.0.0.2" {
				<-ctx.Done()
			}
			return d.control(ctx, network, address, c)
		}
		mustReachTheSecond(t, d)
	})
}

func TestADialThatOutlivesItsRequestStillEnds(t *testing.T) {
	silent := func(ctx context.Context, _, host string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, &net.DNSError{Err: ctx.Err().Error(), Name: host, IsTimeout: true}
	}
	_, err := dialName(newDialer(outsidePolicy, 50*time.Millisecond, silent), 443)
	if classify(err, false) != failedTimeout {
		t.Errorf("a resolver that never answers gave %v", err)
	}
}
