package webhooks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFailuresBeforeAResponse(t *testing.T) {
	t.Run("a name without addresses is dns", func(t *testing.T) {
		for _, lookup := range []lookupFunc{
			func(_ context.Context, _, host string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			},
			func(context.Context, string, string) ([]netip.Addr, error) { return nil, nil },
		} {
			s := newSender(targetPolicy{}, patient, lookup)
			mustHaveFailed(t, s.send(t.Context(), sample("https://shop.example/")), failedDNS, 0)
		}
	})
	t.Run("a name server that never answers is timeout", func(t *testing.T) {
		s := newSender(targetPolicy{}, impatient, func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		mustHaveFailed(t, s.send(t.Context(), sample("https://shop.example/")), failedTimeout, 0)
	})
	t.Run("a closed port is connect", func(t *testing.T) {
		listener, _ := listen(t, "127.0.0.1", 0)
		_ = listener.Close()
		mustHaveFailed(t, sendTo(t, patient, "http://"+listener.Addr().String()), failedConnect, 0)
	})
	for name, answer := range map[string]func(*receiver, net.Conn){
		"a connection closed at once":           func(*receiver, net.Conn) {},
		"a connection closed after the request": func(r *receiver, conn net.Conn) { r.readRequest(bufio.NewReader(conn)) },
		"a connection reset after the request": func(r *receiver, conn net.Conn) {
			r.readRequest(bufio.NewReader(conn))
			_ = conn.(*net.TCPConn).SetLinger(0)
		},
		"half a response head": answering("HTTP/1.1 200 OK\r\nContent-Le"),
		"another protocol":     answering("SSH-2.0-OpenSSH_9.9\r\n"),
		"HTTP/2 and nothing else": func(_ *receiver, conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1))
			_, _ = io.WriteString(conn, "\x00\x00\x00\x04\x00\x00\x00\x00\x00") // its settings
		},
		"a flood of early hints": answering(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10_000)),
		"a head without end":     answering("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Filler: aaaaaaaaaaaaaaaaaaaa\r\n", 1000) + "\r\n"),
	} {
		t.Run(name+" is reset", func(t *testing.T) {
			r := receive(t, answer)
			mustHaveFailed(t, sendTo(t, patient, "http://"+r.addr), failedReset, 0)
			if r.accepted.Load() != 1 {
				t.Errorf("%d connections were made", r.accepted.Load())
			}
		})
	}
}

func TestAReceiverThatHangsIsCutAtTheTimeout(t *testing.T) {
	for name, answer := range map[string]func(*receiver, net.Conn){
		"and does not read": func(_ *receiver, conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1))
			hold(conn)
		},
		"before its head": func(r *receiver, conn net.Conn) {
			r.readRequest(bufio.NewReader(conn))
			hold(conn)
		},
		"in the middle of its head": func(r *receiver, conn net.Conn) {
			answering("HTTP/1.1 200 OK\r\nContent-")(r, conn)
			hold(conn)
		},
		"between the bytes of its head": func(r *receiver, conn net.Conn) {
			r.readRequest(bufio.NewReader(conn))
			tick := time.NewTicker(impatient / 10)
			defer tick.Stop()
			for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") {
				<-tick.C
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
			}
		},
		"with one early hint after another": func(r *receiver, conn net.Conn) {
			r.readRequest(bufio.NewReader(conn))
			tick := time.NewTicker(impatient / 10)
			defer tick.Stop()
			for range 1000 {
				<-tick.C
				if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t, answer)
			got := sendTo(t, impatient, "http://"+r.addr)
			mustHaveFailed(t, got, failedTimeout, 0)
			if got.Duration < impatient || got.Duration > 10*impatient {
				t.Errorf("cut after %s, want about %s", got.Duration, impatient)
			}
		})
	}
}

func TestADripOfABodyIsCutButDelivered(t *testing.T) {
	r := receive(t, func(r *receiver, conn net.Conn) {
		answering("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n1")(r, conn)
		hold(conn)
	})
	began := time.Now()
	got := sendTo(t, impatient, "http://"+r.addr)
	mustBeDelivered(t, got, 200)
	if got.Excerpt != "1" || got.Duration > impatient || got.Held < impatient {
		t.Errorf("outcome %+v", got)
	}
	if elapsed := time.Since(began); elapsed > 10*impatient {
		t.Errorf("held up for %s", elapsed)
	}
}

func TestABodyOfOneByteAtATimeIsCutButDelivered(t *testing.T) {
	r := receive(t, func(r *receiver, conn net.Conn) {
		answering("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")(r, conn)
		tick := time.NewTicker(impatient / 10)
		defer tick.Stop()
		for range 1000 {
			<-tick.C
			if _, err := io.WriteString(conn, "a"); err != nil {
				return
			}
		}
	})
	began := time.Now()
	got := sendTo(t, impatient, "http://"+r.addr)
	mustBeDelivered(t, got, 200)
	if elapsed := time.Since(began); got.Excerpt == "" || len(got.Excerpt) > 100 || elapsed > 10*impatient {
		t.Errorf("after %s the excerpt is %q", elapsed, got.Excerpt)
	}
}

func TestAConnectionThatBreaksInTheBodyHasDelivered(t *testing.T) {
	r := receive(t, func(r *receiver, conn net.Conn) {
		answering("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")(r, conn)
		_ = conn.(*net.TCPConn).SetLinger(0)
	})
	got := sendTo(t, patient, "http://"+r.addr)
	mustBeDelivered(t, got, 200)
	if r.requests.Load() != 1 {
		t.Errorf("%d requests arrived", r.requests.Load())
	}
}

func TestAnEndlessBodyIsCutBySizeButDelivered(t *testing.T) {
	ended := make(chan int, 1)
	r := receive(t, func(r *receiver, conn net.Conn) {
		answering("HTTP/1.1 200 OK\r\n\r\n")(r, conn)
		total := 0
		for total < 64<<20 {
			n, err := io.WriteString(conn, strings.Repeat("a", 64<<10))
			if total += n; err != nil {
				break
			}
		}
		ended <- total
	})
	got := sendTo(t, patient, "http://"+r.addr)
	mustBeDelivered(t, got, 200)
	if got.Excerpt != strings.Repeat("a", maxResponse) {
		t.Errorf("excerpt of %d bytes", len(got.Excerpt))
	}
	if total := <-ended; total >= 64<<20 {
		t.Error("the body was drained instead of given up")
	}
}

func TestABodyIsNotCutWithinACharacter(t *testing.T) {
	text := strings.Repeat("a", maxResponse-3)
	r := receive(t, answering("HTTP/1.1 200 OK\r\n\r\n"+text+"🎉"))
	if got := sendTo(t, patient, "http://"+r.addr); got.Excerpt != text {
		t.Errorf("excerpt of %d bytes ends %q", len(got.Excerpt), got.Excerpt[max(0, len(got.Excerpt)-4):])
	}
}

func TestAGzipBombIsNotUnpacked(t *testing.T) {
	var bomb bytes.Buffer
	packer, _ := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if _, err := packer.Write(make([]byte, 16<<20)); err != nil {
		t.Fatal(err)
	}
	if err := packer.Close(); err != nil {
		t.Fatal(err)
	}
	r := receive(t, answering(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", bomb.Len(), bomb.String())))
	got := sendTo(t, patient, "http://"+r.addr)
	mustBeDelivered(t, got, 200)
	if len(got.Excerpt) > maxResponse || !strings.HasPrefix(got.Excerpt, "\x1f") {
		t.Errorf("excerpt of %d bytes begins %.10q", len(got.Excerpt), got.Excerpt)
	}
}

func TestAChangeOfProtocolIsAFailureAndIsNotWaitedFor(t *testing.T) {
	r := receive(t, func(r *receiver, conn net.Conn) {
		answering("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")(r, conn)
		hold(conn)
	})
	mustHaveFailed(t, sendTo(t, patient, "http://"+r.addr), failedStatus, 101)
}

func TestExcerptIsAlwaysTextThatCanBeStored(t *testing.T) {
	for name, row := range map[string]struct{ body, want string }{
		"text stays as it is":              {"São João 🎉\n\t", "São João 🎉\n\t"},
		"nothing":                          {"", ""},
		"NUL is replaced":                  {"a\x00b", "a\uFFFDb"},
		"bytes that are not UTF-8":         {"caf\xe9!", "caf\uFFFD!"},
		"exactly 16 KiB":                   {strings.Repeat("a", maxResponse), strings.Repeat("a", maxResponse)},
		"a character across the cut":       {strings.Repeat("a", maxResponse-1) + "é", strings.Repeat("a", maxResponse-1)},
		"a long character across the cut":  {strings.Repeat("a", maxResponse-3) + "🎉", strings.Repeat("a", maxResponse-3)},
		"replacements that make it longer": {strings.Repeat("\x00", maxResponse), strings.Repeat("\uFFFD", maxResponse/3)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt([]byte(row.body), maxResponse); got != row.want {
				t.Errorf("excerpt of %d bytes ends %q, want %d bytes", len(got), got[max(0, len(got)-8):], len(row.want))
			}
		})
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("São"), 8<<10)
	f.Add([]byte{0, 0x80, 0xff}, 6000)
	f.Fuzz(func(t *testing.T, part []byte, times int) {
		times = max(0, min(times, 2*maxResponse/max(1, len(part))))
		got := excerpt(bytes.Repeat(part, times), maxResponse)
		if len(got) > maxResponse || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("excerpt of %d bytes cannot be stored", len(got))
		}
	})
}
