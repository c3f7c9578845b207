package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/services/webhooks"
)

const (
	webhooksDatabase    = "partilha_webhooks"
	deliveryConcurrency = 64
	endpointsOfTenant   = 50 // as many as a tenant may have
)

// measureDeliveries compares the deliveries of the webhooks service, which works off a
// backlog, with a loop that signs and posts the same bytes and records nothing.
func measureDeliveries(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
Deliveries a second at concurrency %d, to receivers on this machine: median (least–greatest) of %d rounds of %d s
  loop      signs and posts over kept-alive connections, and nothing else
  service   the webhooks service alone: claims what waits, signs, posts, and records every outcome

`, deliveryConcurrency, o.rounds, o.seconds)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "endpoints\tloop\tservice\tservice/loop\tPostgreSQL, µs a delivery\tservice: own, µs a delivery\tloop: own, µs a delivery")
	for _, endpoints := range []int{1, 100} {
		var loop, service rounds
		for range o.rounds {
			m, err := deliveryRound(ctx, g, o, assignment{Role: roleLoop}, endpoints)
			if err != nil {
				return fmt.Errorf("loop: %w", err)
			}
			loop = append(loop, m)
			if m, err = deliveryRound(ctx, g, o, assignment{Role: roleWebhooks, CPUProfile: o.cpuProfile}, endpoints); err != nil {
				return fmt.Errorf("webhooks service: %w", err)
			}
			service = append(service, m)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%.0f\t%.0f\t%.0f\n", endpoints, loop.perSecond().spread("%.0f"), service.perSecond().spread("%.0f"),
			service.perSecond().over(loop.perSecond()).spread("%.2f"),
			service.microseconds(ofPostgres), service.microseconds(ofService), loop.microseconds(ofService))
	}
	return table.Flush()
}

// deliveryRound has a child deliver to that many receivers, and counts there what came.
func deliveryRound(ctx context.Context, g *ground, o options, a assignment, endpoints int) (m measured, err error) {
	counters, err := listenAll(endpoints)
	if err != nil {
		return m, err
	}
	defer counters.close()
	a.Targets = counters.urls
	const mostPerSecond = 12_000 // more than a machine delivers
	backlog := int64(mostPerSecond * (o.seconds + int(2*warmUp/time.Second)))
	if a.Role == roleWebhooks {
		if err := fillWebhooks(ctx, g, counters.urls, backlog); err != nil {
			return m, fmt.Errorf("make a backlog: %w", err)
		}
		a.DatabaseURL = g.postgres.URL(webhooksDatabase)
	}
	c, err := startChild(g, a)
	if err != nil {
		return m, err
	}
	defer func() {
		if err = errors.Join(err, c.stop()); err == nil {
			err = errors.Join(expectDeliveries(ctx, g, a, counters.total.Load()), c.discard())
		}
	}()
	await := func(d time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
	if err := await(warmUp); err != nil {
		return m, err
	}
	effort, before, start := g.effort(c.cmd.Process.Pid), counters.total.Load(), time.Now()
	if err := await(time.Duration(o.seconds) * time.Second); err != nil {
		return m, err
	}
	n, took := counters.total.Load()-before, time.Since(start)
	if n == 0 || a.Role == roleWebhooks && counters.total.Load() >= backlog {
		return m, fmt.Errorf("%d of a backlog of %d were delivered: that measures something else", counters.total.Load(), backlog)
	}
	return measured{float64(n) / took.Seconds(), g.effort(c.cmd.Process.Pid).since(effort).perSale(n)}, nil
}

// expectDeliveries fails unless exactly what the receivers have counted is recorded as
// delivered, once the service has stopped.
func expectDeliveries(ctx context.Context, g *ground, a assignment, counted int64) error {
	if a.Role != roleWebhooks {
		return nil
	}
	return errors.Join(
		g.expect(ctx, "deliveries", webhooksDatabase, `select count(*) from deliveries where state = 'delivered'`, counted),
		g.expect(ctx, "attempts", webhooksDatabase, `select count(*) from attempts where status_code = 204`, counted),
		g.expect(ctx, "claims left", webhooksDatabase, `select count(*) from pending where claim is not null`, 0))
}

// fillWebhooks makes a fresh database of the webhooks service with an endpoint for each
// URL and a backlog that is spread evenly over them.
func fillWebhooks(ctx context.Context, g *ground, urls []string, backlog int64) error {
	if err := g.fresh(ctx, webhooksDatabase); err != nil {
		return err
	}
	address := g.postgres.URL(webhooksDatabase)
	if err := postgres.Migrate(ctx, address, webhooks.Migrations...); err != nil {
		return err
	}
	var keys []string
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for range (len(urls) + endpointsOfTenant - 1) / endpointsOfTenant {
		text, keyID, hash, err := auth.NewSecret()
		if err != nil {
			return err
		}
		const know = `insert into known_keys (key_id, key_hash, tenant_id, suspended, scopes, version) values ($1, $2, $3, false, $4, 1)`
		if _, err := conn.Exec(ctx, know, keyID, hash[:], uuid.New(), auth.AllScopes.Strings()); err != nil {
			return err
		}
		keys = append(keys, text)
	}
	c, err := startChild(g, assignment{Role: roleWebhooks, DatabaseURL: address})
	if err != nil {
		return err
	}
	for i, url := range urls {
		s := &shop{address: c.Address, key: keys[i/endpointsOfTenant]}
		if err := s.call(ctx, s.key, "POST", "/api/v1/webhook-endpoints", object{"url": url, "events": []string{"*"}}, nil); err != nil {
			return errors.Join(err, c.stop())
		}
	}
	if err := errors.Join(c.stop(), c.discard()); err != nil {
		return err
	}
	const fill = `
with made as (
	select p.tenant_id, p.endpoint_id, n, gen_random_uuid() as event_id,
		date_trunc('milliseconds', now()) - ($2::bigint - n) / 20 * interval '1 ms' as created_at
	from (select tenant_id, endpoint_id, row_number() over (order by endpoint_id) - 1 as place, count(*) over () as endpoints from endpoints) p
	join generate_series(1, $2::bigint) n on n % p.endpoints = p.place),
told as (
	insert into events (tenant_id, event_id, name, created_at, position, body)
	select tenant_id, event_id, $3, created_at, n, $1 from made)
insert into pending (tenant_id, endpoint_id, delivery_id, created_at, event_id, name)
select tenant_id, endpoint_id, (lpad(to_hex((extract(epoch from created_at) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
	created_at, event_id, $3 from made`
	if _, err := conn.Exec(ctx, fill, deliveryBody, backlog, event.NameCommissionAvailable); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "vacuum analyze pending, events"); err != nil {
		return err
	}
	return g.settle(ctx)
}

// deliveryBody is what is posted: an event as long as the usual ones.
var deliveryBody = []byte(`{"event":"commission.available","event_id":"evt_67d35554c1f60638d6d72a0edc045450","created_at":"2026-07-14T13:05:09.120431Z",` +
	`"tenant_id":"019f60b1-3400-7e63-82b7-095b0bf32c26","data":{"commission_id":"019f60bb-3400-708f-8271-887ce94707da",` +
	`"partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b","amount_brl":32.42,"source_sale_id":"019f60bb-3400-78de-80b3-c47f112c5974",` +
	`"campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","source_conversion_id":null,"kind":"sale","status":"available","available_at":"2026-07-14T13:05:09.120431Z"}}`)

// counters are receivers that believe everything and count it.
type counters struct {
	urls      []string
	total     atomic.Int64
	listeners []net.Listener
}

func listenAll(n int) (_ *counters, err error) {
	c := &counters{}
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.close()
			return nil, fmt.Errorf("listen for webhooks: %w", err)
		}
		c.listeners = append(c.listeners, listener)
		c.urls = append(c.urls, "http://"+listener.Addr().String()+"/webhook")
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return // it is closed
				}
				go c.serve(conn)
			}
		}()
	}
	return c, nil
}

// serve counts what comes on one connection until its other end closes it.
func (c *counters) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 4096)
	for {
		head, err := readRequestHead(reader)
		if err != nil {
			return
		}
		if _, err := reader.Discard(head.length); err != nil {
			return
		}
		c.total.Add(1)
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}

func (c *counters) close() {
	for _, listener := range c.listeners {
		listener.Close()
	}
}

// postInALoop is the least that delivering takes: it signs and posts to the targets in
// turn, as many at a time as the service may have in flight, until ctx ends.
func postInALoop(ctx context.Context, a assignment) error {
	transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: deliveryConcurrency, DisableCompression: true}
	defer transport.CloseIdleConnections()
	var turn, failed atomic.Int64
	var group sync.WaitGroup
	for range deliveryConcurrency {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := postOnce(transport, a.Targets[int(turn.Add(1))%len(a.Targets)]); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	group.Wait()
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d posts failed", n)
	}
	return nil
}

const loopSecret = "whsec_OnlyTheLoopOfTheBenchmarkSignsWithThis0000"

func postOnce(transport *http.Transport, url string) error {
	mac := hmac.New(sha256.New, []byte(loopSecret))
	mac.Write(deliveryBody)
	post, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(deliveryBody))
	if err != nil {
		return err
	}
	post.Header = http.Header{
		"Content-Type": {"application/json"}, "X-Service-Event": {event.NameCommissionAvailable},
		"X-Service-Signature": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}, "User-Agent": {"Service-Webhook/1.0"},
	}
	response, err := transport.RoundTrip(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("answered %d", response.StatusCode)
	}
	return nil
}
