package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"partilha.dev/pkg/event"
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
	counters, err := listenAll(endpoints, nil)
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
		a.Attempts = deliveryConcurrency
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
	if err := pass(ctx, warmUp); err != nil {
		return m, err
	}
	effort, before, start := g.effort(c.cmd.Process.Pid), counters.total.Load(), time.Now()
	if err := pass(ctx, time.Duration(o.seconds)*time.Second); err != nil {
		return m, err
	}
	n, took := counters.total.Load()-before, time.Since(start)
	if n == 0 || a.Role == roleWebhooks && counters.total.Load() >= backlog {
		return m, fmt.Errorf("%d of a backlog of %d were delivered: that measures something else", counters.total.Load(), backlog)
	}
	return measured{float64(n) / took.Seconds(), g.effort(c.cmd.Process.Pid).since(effort).perSale(n)}, nil
}

// pass returns after d, or as soon as ctx ends.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
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
