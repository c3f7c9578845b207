package commissions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
)

// program is the service as a process on the fixture's database, which can be killed, by
// any goroutine, and started again at the same address.
type program struct {
	*fixture
	nats, addr string

	mu   sync.Mutex
	cmd  *exec.Cmd
	dead chan struct{}
}

func newProgram(f *fixture, nats string) *program {
	f.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	p := &program{fixture: f, nats: nats, addr: free.Addr().String()}
	if err := free.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(p.kill)
	return p
}

func (p *program) start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.dead = exec.Command(os.Args[0], "serve"), make(chan struct{})
	p.cmd.Env = []string{
		runAs + "=1", "DATABASE_URL=" + p.deps.Pool.Config().ConnString(), "NATS_URL=" + p.nats, "ADDR=" + p.addr,
		"COMMISSIONS_SECRET_KEY=" + sealingKey, "RATE_LIMIT=off", "LOG_LEVEL=error", "TMPDIR=" + os.TempDir(),
	}
	p.cmd.Stdout, p.cmd.Stderr = p.t.Output(), p.t.Output()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, dead chan struct{}) {
		defer close(dead)
		_ = cmd.Wait() // it is killed
	}(p.cmd, p.dead)
}

// kill ends the process with kill -9 and returns when it is dead.
func (p *program) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may be dead already
		<-p.dead
	}
}

// payer asks for withdrawals of one tenant's partners and settles them, over HTTP, and
// says everything again that has no certain answer.
type payer struct {
	*program
	random   *source
	key      string
	tenant   uuid.UUID
	partners []uuid.UUID
	sent     func() // is called when a request has been written

	granted []granted
	cut     int // calls that were sent and not answered
}

// granted is a withdrawal that was answered, and what became of it.
type granted struct {
	id, partner uuid.UUID
	amount      money.BRL
	states      []string
}

// call says the same until the answer is certain.
func (p *payer) call(target, body string) (status int, members map[string]any, err error) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		status, members, err = p.try(target, body)
		if err == nil && status < 500 {
			return status, members, nil
		}
		select {
		case <-p.t.Context().Done():
			return 0, nil, p.t.Context().Err()
		case <-again.C:
		}
	}
}

func (p *payer) try(target, body string) (status int, members map[string]any, err error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), soon)
	defer cancel()
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		written.Store(true)
		p.sent()
	}})
	defer func() {
		if err != nil && written.Load() {
			p.cut++
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.addr+target, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.GetBody = nil // so that nothing but this client repeats anything
	request.Header.Set("Authorization", "Bearer "+p.key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil, err
	}
	return answer.StatusCode, members, json.Unmarshal(raw, &members)
}

// round asks for one withdrawal and, if it is granted, brings it somewhere.
func (p *payer) round() error {
	partner, amount := p.partners[p.random.IntN(len(p.partners))], money.BRL(1+p.random.IntN(1_000))
	status, members, err := p.call(withdrawalsPath, fmt.Sprintf(
		`{"partner_id":%q,"amount_brl":%s,"pix_key_type":"cpf","pix_key":"529.982.247-25","external_ref":%q}`, partner, amount, p.random.id()))
	switch {
	case err != nil:
		return err
	case status == 404 || status == 422: // it has too little so far
		return nil
	case status != 200 && status != 201:
		return fmt.Errorf("asked: %d %v", status, members)
	}
	g := granted{id: uuid.MustParse(members["withdrawal_id"].(string)), partner: partner, amount: amount}
	ways := [][]string{nil, {"cancel"}, {"reject"}, {"approve"}, {"approve", "fail"}, {"approve", "pay"}, {"approve", "pay"}}
	for _, verb := range ways[p.random.IntN(len(ways))] {
		body := "{}"
		switch verb {
		case "pay":
			body = fmt.Sprintf(`{"end_to_end_id":"E12345678202607141305%011d"}`, p.random.IntN(100_000_000_000))
		case "reject", "fail":
			body = `{"reason":"it must not be"}`
		}
		status, members, err := p.call(withdrawalsPath+"/"+g.id.String()+"/"+verb, body)
		if err != nil || status != 200 {
			return fmt.Errorf("%s: %d %v: %w", verb, status, members, err)
		}
		g.states = append(g.states, members["status"].(string))
	}
	p.granted = append(p.granted, g)
	return nil
}

// fuse fires once, when it has been struck so many times.
type fuse struct {
	left  atomic.Int64
	fired chan struct{}
}

func newFuse(strikes int) *fuse {
	f := &fuse{fired: make(chan struct{})}
	f.left.Store(int64(strikes))
	return f
}

func (f *fuse) strike() {
	if f.left.Add(-1) == 0 {
		close(f.fired)
	}
}

// TestTheBooksHoldHoweverOftenTheServiceIsKilled kills a real process at random moments:
// while it answers a call, or while it handles the events of the histories, which come
// from NATS in any order and some of them twice.
func TestTheBooksHoldHoweverOftenTheServiceIsKilled(t *testing.T) {
	t.Parallel()
	const kills, size = 24, 120
	if *seed == 0 {
		*seed = newSource(uint64(time.Now().UnixNano()), 0).Uint64()
	}
	t.Logf("-seed %d", *seed)
	random := newSource(*seed, 1<<32)
	nats := testkit.NATS(t)
	announceKeys(t, nats.URL())
	f := prepare(t, nats.URL())
	c := newCrowd(f, random, size)
	service := newProgram(f, nats.URL())
	var current atomic.Pointer[fuse]
	current.Store(newFuse(0))
	var payers []*payer
	for i, tenant := range slices.Concat(c.tenants, c.tenants) {
		payers = append(payers, &payer{
			program: service, random: newSource(*seed, 1<<33+uint64(i)), tenant: tenant, sent: func() { current.Load().strike() },
			key: f.key(tenant, auth.WithdrawalsWrite, auth.WithdrawalsApprove, auth.CommissionsRead),
		})
	}
	f.wire() // which only looks
	events := c.shipped(payers)
	others := newOthers(t, nats.URL())

	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, p := range payers {
		working.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := p.round(); err != nil {
					if t.Context().Err() == nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	each := len(events)/kills + 1
	for chunk := range slices.Chunk(events, each) {
		before := c.moved()
		service.start()
		others.publish(chunk...)
		if random.IntN(2) == 0 {
			calls := newFuse(1 + random.IntN(200))
			current.Store(calls)
			select {
			case <-calls.fired:
			case <-time.After(2 * soon):
				t.Fatal("nobody could call the service")
			}
		} else {
			more := 1 + random.IntN(40)
			testkit.Eventually(t, 2*soon, "the service moves money", func() bool { return c.moved() >= before+more })
		}
		service.kill()
	}
	service.start()
	close(stop)
	working.Wait()
	testkit.Eventually(t, 4*soon, "everything is handled, released and published", func() bool {
		return f.handled(others) && len(f.dump(`select 1 from holds`)) == 0 && len(f.dump(`select 1 from outbox_pending`)) == 0
	})
	service.kill()

	cut, withdrawals := 0, []granted{}
	for _, p := range payers {
		cut, withdrawals = cut+p.cut, append(withdrawals, p.granted...)
	}
	t.Logf("%d events, %d withdrawals, %d calls that were cut off by %d kills", len(events), len(withdrawals), cut, kills)
	if cut < kills/4 || len(withdrawals) < kills {
		t.Error("the service was hardly killed while it was needed")
	}
	c.reckon(withdrawals)
	if err := c.checkSums(); err != nil {
		t.Error(err)
	}
	if told, published := len(f.dump(`select 1 from outbox where name <> 'window.commissions'`)), len(f.publishedIDs()); told != published {
		t.Errorf("%d events were stored and %d published", told, published)
	}
}

// publishedIDs are the ids of the events on the service's own stream, where one whose
// publication nobody could confirm any more may stand twice.
func (f *fixture) publishedIDs() map[event.ID]bool {
	f.t.Helper()
	stream, err := f.deps.Bus.JetStream().Stream(f.t.Context(), bus.Commissions.Name)
	if err != nil {
		f.t.Fatal(err)
	}
	ids := map[event.ID]bool{}
	for at := range stream.CachedInfo().State.LastSeq {
		message, err := stream.GetMsg(f.t.Context(), at+1)
		if err != nil {
			f.t.Fatal(err)
		}
		if message.Subject == bus.Commissions.WindowName() {
			continue
		}
		told, err := event.Open(message.Data)
		if err != nil {
			f.t.Fatal(err)
		}
		ids[told.ID] = true
	}
	return ids
}

// reckon has all that was published, and the withdrawals, happen to the models, in an
// order in which no money is wanting: what comes of it is the same in any.
func (c *crowd) reckon(withdrawals []granted) {
	of := map[uuid.UUID]*model{}
	for _, s := range c.shops {
		for _, h := range s.coming {
			if h.after == uuid.Nil {
				h.expect()
			}
		}
		s.model.release(c.end)
		for partner := range s.model.partners {
			of[partner] = s.model
		}
	}
	returned := func(g granted) bool {
		return len(g.states) > 0 && slices.Contains([]string{"cancelled", "rejected", "failed"}, g.states[len(g.states)-1])
	}
	for _, first := range []bool{true, false} {
		for _, g := range withdrawals {
			if returned(g) == first {
				of[g.partner].ask(g.id, &asked{partner: g.partner, amount: g.amount, status: "requested"})
				for _, to := range g.states {
					of[g.partner].move(g.id, to)
				}
			}
		}
	}
	for _, s := range c.shops {
		for _, h := range s.coming {
			if h.after != uuid.Nil {
				h.expect()
			}
		}
	}
}

// releasedQuery is how many commissions were released: one that is worth nothing moves no
// money, and one that was refunded before its time is not released at all.
const releasedQuery = `
select (select count(*) from transfers where kind = 'release')
	+ (select count(*) from commissions where commission_amount_centavos = 0 and available_at > created_at)`

// checkSums compares with the models whatever does not depend on the order in which
// things came, which nobody knows any more, and audits the books.
func (c *crowd) checkSums() error {
	got := slices.Concat(c.dump(`select partner_id, `+balanceColumns+` from accounts`),
		c.dump(`select commission_id, commission_amount_centavos, reversed_centavos, status = 'reversed' from commissions`),
		c.dump(`select withdrawal_id, amount_centavos, status from withdrawals`))
	var want []string
	told := c.told()
	for _, s := range c.shops {
		for id, p := range s.model.partners {
			want = append(want, fmt.Sprintf("(%s,%d,%d,%d,%d,%d)", id, p.Pending, p.Available, p.Reserved, p.Paid, p.Debt))
		}
		for id, e := range s.model.commissions {
			want = append(want, fmt.Sprintf("(%s,%d,%d,%.1s)", id, e.amount, e.reversed, strconv.FormatBool(e.status == "reversed")))
		}
		for id, w := range s.model.withdrawals {
			want = append(want, fmt.Sprintf("(%s,%d,%s)", id, w.amount, w.status))
		}
	}
	delete(told, event.NameCommissionReleased)
	if n, err := strconv.Atoi(strings.Trim(c.dump(releasedQuery)[0], "()")); err != nil || n > 0 {
		told[event.NameCommissionReleased] = n
	}
	return errors.Join(compare(got, want), c.audit(told))
}

// moved is how many transfers there are.
func (c *crowd) moved() int { return len(c.dump(`select 1 from transfers`)) }

// shipped is all that happens to the crowd as it is published: in any order, and one event
// in ten twice. What is held back is so for some seconds. The payers get to know the
// partners.
func (c *crowd) shipped(payers []*payer) (events []event.Sealed) {
	for _, s := range c.shops {
		for i, h := range s.coming {
			if e, ok := h.event.(event.Event[event.SaleRecorded]); ok {
				e.Data.SoldAt = s.now.Add(time.Duration(1+c.random.IntN(20))*time.Second - time.Duration(e.Data.HoldDays)*day)
				h.event, s.coming[i].event = e, e
				for _, p := range payers {
					if p.tenant == s.tenant {
						p.partners = append(p.partners, e.Data.PartnerID)
					}
				}
			}
			sealed := h.sealed(c.t)
			events = append(events, sealed)
			if c.random.IntN(10) == 0 {
				events = append(events, sealed)
			}
		}
	}
	c.random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return events
}

// sealed is the event as its service publishes it.
func (h happening) sealed(t *testing.T) event.Sealed {
	t.Helper()
	switch e := h.event.(type) {
	case event.Event[event.SaleRecorded]:
		return sealedSale(t, e)
	case event.Event[event.ConversionRecorded]:
		return sealed(t, e.TenantID, e.Data.ConversionID.String(), e.CreatedAt, e.Data)
	case event.Event[event.GoalReached]:
		return sealed(t, e.TenantID, e.Data.GoalID.String(), e.CreatedAt, e.Data)
	case event.Event[event.SaleRefunded]:
		return sealed(t, e.TenantID, e.Data.RefundID.String(), e.CreatedAt, e.Data)
	}
	t.Fatalf("%T is not published", h.event)
	return event.Sealed{}
}
