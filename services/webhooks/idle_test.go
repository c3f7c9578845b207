package webhooks

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A receiver closes each connection at another moment after its answer: at once, when the
// next request is under way, and at all moments between. Whatever it does, no request may
// reach it twice, and what it never read it was not said to have.
func TestAReceiverThatClosesIdleConnectionsNeverGetsAPostTwice(t *testing.T) {
	const posts = 400
	var closed atomic.Int32 // while they were idle
	var mu sync.Mutex
	seen := map[string]int{}
	r := receive(t, func(_ *receiver, conn net.Conn) {
		in := bufio.NewReader(conn)
		for n := 0; ; n++ {
			got, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, err := io.ReadAll(got.Body)
			if err != nil {
				return
			}
			mu.Lock()
			seen[string(body)]++
			moment := time.Duration(len(seen)%40) * 2 * time.Microsecond
			mu.Unlock()
			if n == 3 {
				return // it has read the request and hangs up
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			if moment == 0 {
				continue // this one it keeps open
			}
			_ = conn.SetReadDeadline(time.Now().Add(moment))
			if _, err := in.Peek(1); err != nil {
				closed.Add(1)
				return
			}
			_ = conn.SetReadDeadline(time.Time{})
		}
	})
	s := newSender(localPolicy, patient, net.DefaultResolver.LookupNetIP)
	defer s.close()
	delivered, reset := 0, 0
	for i := range posts {
		one := sample("http://" + r.addr)
		one.Body = fmt.Appendf(nil, `{"post":%d}`, i)
		got := s.send(t.Context(), one)
		mu.Lock()
		times := seen[string(one.Body)]
		mu.Unlock()
		switch {
		case times > 1:
			t.Errorf("post %d arrived %d times", i, times)
		case got.Delivered && times == 1:
			delivered++
		case got.Error == failedReset:
			reset++
		default:
			t.Errorf("post %d arrived %d times, and its outcome is %+v", i, times, got)
		}
	}
	if delivered == 0 || reset == 0 || closed.Load() == 0 {
		t.Errorf("%d were delivered and %d were reset, of %d connections %d were closed while idle", delivered, reset, r.accepted.Load(), closed.Load())
	}
	t.Logf("%d were delivered and %d were reset, of %d connections %d were closed while idle", delivered, reset, r.accepted.Load(), closed.Load())
}
