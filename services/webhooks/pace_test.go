package webhooks

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
)

func TestAnEndpointIsSlowedByFailuresAndRecovers(t *testing.T) {
	t.Parallel()
	good := outcome{Delivered: true, StatusCode: 200}
	hung, broken := outcome{Error: failedTimeout}, outcome{Error: failedStatus, StatusCode: 500}
	busy := func(status int) outcome { return outcome{Error: failedStatus, StatusCode: status} }
	for name, row := range map[string]struct {
		outcomes []outcome
		want     int // of 32
	}{
		"nothing is known":                {nil, 32},
		"it does well":                    {[]outcome{good, good}, 32},
		"one failure":                     {[]outcome{good, hung}, 16},
		"two failures":                    {[]outcome{hung, broken}, 8},
		"many failures":                   {[]outcome{hung, hung, hung, hung, hung, hung, hung, hung, hung, hung}, 1},
		"a failure and a success":         {[]outcome{hung, good}, 32},
		"two failures and a success":      {[]outcome{hung, hung, good}, 16},
		"many failures and two successes": {[]outcome{hung, hung, hung, hung, hung, hung, hung, good, good}, 2},
		"429":                             {[]outcome{good, busy(429)}, 1},
		"502":                             {[]outcome{good, busy(502)}, 1},
		"503":                             {[]outcome{good, busy(503)}, 1},
		"504":                             {[]outcome{good, busy(504)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, l := newPaces(time.Now), someLanes(uuid.New(), 2)
			for _, o := range row.outcomes {
				p.note(l[0], o)
			}
			if got := p.most(l[0], 32); got != row.want {
				t.Errorf("%d may be in flight, want %d", got, row.want)
			}
			if got := p.most(l[1], 32); got != 32 {
				t.Errorf("of another endpoint %d may be in flight", got)
			}
		})
	}
}

func TestAnEndpointIsLeftAloneForAsLongAsItsReceiverAsksAMinuteAtMost(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p, l := newPaces(func() time.Time { return now }), someLanes(uuid.New(), 1)[0]
	for asked, pause := range map[time.Duration]time.Duration{
		0: 0, 7 * time.Second: 7 * time.Second, time.Hour: time.Minute,
	} {
		p.note(l, outcome{Error: failedStatus, StatusCode: 503, RetryAfter: asked})
		if got := p.most(l, 32); pause > 0 && got != 0 {
			t.Errorf("asked for %s, %d are sent at once", asked, got)
		}
		now = now.Add(pause)
		if got := p.most(l, 32); got != 1 {
			t.Errorf("asked for %s, %d may be in flight after %s", asked, got, pause)
		}
	}
	p.note(l, outcome{Error: failedTimeout})
	now = now.Add(paceKept)
	if p.forget(); len(p.slow) != 1 {
		t.Error("it is forgotten too early")
	}
	now = now.Add(time.Second)
	if p.forget(); len(p.slow) != 0 {
		t.Error("it is never forgotten")
	}
}

func TestAReceiverThatHangsComesToHoldOneSlotAndGetsThemBackOnceItDoesWell(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	var well atomic.Bool
	in := newInbox(t, func(_ http.ResponseWriter, r *http.Request) {
		if !well.Load() {
			<-r.Context().Done()
		}
	})
	config := lenient
	config.Timeout = 200 * time.Millisecond
	s := k.service(config)
	k.register(s, who, in.URL, "*")
	k.fanOut(s, joinedMany(t, who.tenant, 500)...)
	k.run(s.Run)
	testkit.Eventually(t, soon, "its bound of attempts has failed, and more", func() bool { return k.inState(stateFailed) > perEndpoint+3 })
	if n := k.sending(); n > 1 {
		t.Errorf("it holds %d slots", n)
	}
	well.Store(true)
	testkit.Eventually(t, soon, "the rest is delivered", func() bool { return k.pending() == 0 })
	if got := s.dispatcher.paces.most(laneOf(t, k), perEndpoint); got != perEndpoint {
		t.Errorf("it may have %d in flight, want %d again", got, perEndpoint)
	}
}
