// Command bench measures how much Partilha adds to the least that PostgreSQL can do.
//
// The yardstick is pgbench with one prepared statement that inserts a sale and its
// outbox row and looks nothing up. Yardstick and service take turns on one
// PostgreSQL server with its usual durability, on fresh tables each time, so that
// the ratio of a pair says more than either number. The load comes from this
// process; what is measured runs in a child process of its own. Every measurement
// counts its rows in the database and fails if they are not what was answered.
//
// `bench soak` keeps the whole chain at full load for minutes and then counts every
// sale, commission, goal fact and webhook.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	dir        string
	rounds     int
	seconds    int
	parts      string
	clients    string
	rates      string
	sizes      string
	openFor    int
	chainFor   int
	writers    int
	slowFsync  bool
	cpuProfile string
	minutes    int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == childCommand {
		return serveAsChild()
	}
	work := bench
	name := "bench"
	if len(args) > 0 && args[0] == "soak" {
		work, name, args = soak, "bench soak", args[1:]
	}
	o, err := parseOptions(name, args)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1) // an idle second thread would look for work on a core that others need
	g, err := openGround(ctx, o)
	if err != nil {
		return err
	}
	err = g.describe(ctx, o)
	if err == nil {
		err = work(ctx, g, o)
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	return g.close(err)
}

// errInterrupted takes the place of whatever an interruption has made fail.
var errInterrupted = errors.New("interrupted")

func parseOptions(name string, args []string) (o options, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", filepath.Join(".local", "bench"), "folder on a real disk; what is put there is removed at the end")
	flags.BoolVar(&o.slowFsync, "slow-fsync", false, "make every fsync of PostgreSQL take 1 ms more (needs gcc)")
	if name == "bench soak" {
		flags.IntVar(&o.minutes, "minutes", 10, "how long the load lasts")
		flags.StringVar(&o.cpuProfile, "cpuprofile", "", "file for a CPU profile of the four services")
	} else {
		flags.IntVar(&o.rounds, "rounds", 3, "how often each measurement is made, at least 3")
		flags.IntVar(&o.seconds, "seconds", 3, "length of one throughput measurement")
		flags.StringVar(&o.parts, "parts", strings.Join(allParts, ","), "what to measure")
		flags.StringVar(&o.clients, "clients", "1,8,64", "concurrencies at which POST is measured")
		flags.StringVar(&o.rates, "rates", "100,2000", "sales a second of the latency measurements")
		flags.StringVar(&o.sizes, "sizes", "10000,1000000", "sales that are there already where growth is measured; 20000000 takes long, and some 20 GB")
		flags.IntVar(&o.openFor, "latency-seconds", 10, "length of one latency measurement")
		flags.IntVar(&o.chainFor, "chain-seconds", 10, "how long the whole chain is under load")
		flags.IntVar(&o.writers, "writers", 1, "SALES_WRITERS of the sales service while it runs alone")
		flags.StringVar(&o.cpuProfile, "cpuprofile", "", "file for a CPU profile of the sales service at 64 clients, in a run of its own")
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is not understood; see %s -h", flags.Arg(0), name)
	case o.minutes < 0 || name == "bench soak" && o.minutes == 0:
		return o, errors.New("-minutes must be at least 1")
	case name == "bench" && (o.rounds < 3 || o.seconds < 1 || o.openFor < 1 || o.chainFor < 1 || o.writers < 1):
		return o, errors.New("-rounds must be at least 3, and the other numbers at least 1")
	}
	for part := range strings.SplitSeq(o.parts, ",") {
		if name == "bench" && !slices.Contains(allParts, part) {
			return o, fmt.Errorf("-parts knows %s, not %q", strings.Join(allParts, ", "), part)
		}
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return o, fmt.Errorf("find -dir: %w", err)
	}
	return o, nil
}

// numbers reads the list that a flag was given.
func numbers(flag, list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s takes whole numbers separated by commas, not %q", flag, text)
		}
		all = append(all, n)
	}
	return all, nil
}

func (o options) has(part string) bool { return slices.Contains(strings.Split(o.parts, ","), part) }

var allParts = []string{"post", "batch", "growth", "neighbour", "latency", "deliveries", "chain"}

// warmUp precedes every measurement.
const warmUp = time.Second

// bench makes the measurements that were asked for, one after another.
func bench(ctx context.Context, g *ground, o options) error {
	clients, err := numbers("-clients", o.clients)
	if err != nil {
		return err
	}
	rates, err := numbers("-rates", o.rates)
	if err != nil {
		return err
	}
	sizes, err := numbers("-sizes", o.sizes)
	if err != nil {
		return err
	}
	if o.has("post") {
		if err := measurePost(ctx, g, o, clients); err != nil {
			return fmt.Errorf("measure POST: %w", err)
		}
	}
	if o.has("batch") {
		if err := measureBatch(ctx, g, o); err != nil {
			return fmt.Errorf("measure batches: %w", err)
		}
	}
	if o.has("growth") {
		if err := measureGrowth(ctx, g, o, sizes); err != nil {
			return fmt.Errorf("measure growth: %w", err)
		}
	}
	if o.has("neighbour") {
		if err := measureNeighbour(ctx, g, o); err != nil {
			return fmt.Errorf("measure neighbours: %w", err)
		}
	}
	if o.has("latency") {
		if err := measureLatency(ctx, g, o, rates); err != nil {
			return fmt.Errorf("measure latency: %w", err)
		}
	}
	if o.has("deliveries") {
		if err := measureDeliveries(ctx, g, o); err != nil {
			return fmt.Errorf("measure deliveries: %w", err)
		}
	}
	if o.has("chain") {
		if err := measureChain(ctx, g, o); err != nil {
			return fmt.Errorf("measure the chain: %w", err)
		}
	}
	return nil
}
