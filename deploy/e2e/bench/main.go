// Command bench measures how much Partilha adds to the least that PostgreSQL can do.
//
// The yardstick is pgbench with one prepared statement that inserts a sale and its
// outbox row and looks nothing up. Yardstick and service take turns on one
// PostgreSQL server with its usual durability, on fresh tables each time, so that
// the ratio of a pair says more than either number. The load comes from this
// process; what is measured runs in a child process of its own. Every measurement
// counts its rows in the database and fails if they are not what was answered.
//
// Beside the sale path and the whole chain it measures the services that follow a sale,
// each without the others, on a backlog of events or on tables that were loaded
// beforehand. What takes longer than a minute or two is measured only if -parts names it.
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
	clients    []int
	rates      []int
	sizes      []int
	events     int
	transfers  int
	partners   int
	facts      int
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
		flags.StringVar(&o.parts, "parts", strings.Join(usualParts(), ","), "what to measure, of "+strings.Join(partNames(), ", "))
		listVar(flags, &o.clients, "clients", []int{1, 8, 64}, "`concurrencies` at which POST is measured")
		listVar(flags, &o.rates, "rates", []int{100, 2000}, "`sales` a second of the latency measurements")
		listVar(flags, &o.sizes, "sizes", []int{10_000, 1_000_000}, "`sales` that are there already where growth is measured; 20000000 takes long, and some 20 GB")
		flags.IntVar(&o.events, "events", 30_000, "length of a backlog that the ledger books and goals count")
		flags.IntVar(&o.transfers, "transfers", 10_000_000, "transfers in the books of which balances are read; 10000000 take minutes to load, and some 10 GB")
		flags.IntVar(&o.partners, "partners", 1_000_000, "partners on the leaderboard")
		flags.IntVar(&o.facts, "facts", 1_000_000, "past sales that a goal counts where backfill is measured")
		flags.IntVar(&o.openFor, "latency-seconds", 10, "length of one measurement at a steady rate")
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
	case name == "bench" && (o.rounds < 3 || min(o.seconds, o.openFor, o.chainFor, o.writers, o.events, o.transfers, o.partners, o.facts) < 1):
		return o, errors.New("-rounds must be at least 3, and the other numbers at least 1")
	case o.transfers%transfersEach != 0:
		return o, fmt.Errorf("-transfers must be a multiple of %d", transfersEach)
	}
	for part := range strings.SplitSeq(o.parts, ",") {
		if name == "bench" && !slices.Contains(partNames(), part) {
			return o, fmt.Errorf("-parts knows %s, not %q", strings.Join(partNames(), ", "), part)
		}
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return o, fmt.Errorf("find -dir: %w", err)
	}
	return o, nil
}

// listVar defines a flag of whole numbers above 0, separated by commas.
func listVar(flags *flag.FlagSet, into *[]int, name string, usual []int, usage string) {
	*into = usual
	flags.Func(name, fmt.Sprintf("%s (default %s)", usage, strings.Trim(strings.ReplaceAll(fmt.Sprint(usual), " ", ","), "[]")), func(list string) error {
		var all []int
		for text := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return errors.New("it takes whole numbers separated by commas")
			}
			all = append(all, n)
		}
		*into = all
		return nil
	})
}

func (o options) has(part string) bool { return slices.Contains(strings.Split(o.parts, ","), part) }

// part is one thing to measure.
type part struct {
	name    string
	usual   bool   // measured unless -parts says otherwise: it takes a minute or two
	what    string // for whoever reads of its failure
	measure func(context.Context, *ground, options) error
}

// parts are all, in the order in which they are measured.
var parts = []part{
	{"post", true, "POST", measurePost},
	{"batch", true, "batches", measureBatch},
	{"growth", true, "growth", measureGrowth},
	{"neighbour", true, "neighbours", measureNeighbour},
	{"alone", true, "the sales service alone", measureAlone},
	{"overload", true, "overload", measureOverload},
	{"latency", true, "latency", measureLatency},
	{"deliveries", true, "deliveries", measureDeliveries},
	{"isolation", true, "isolation", measureIsolation},
	{"chain", true, "the chain", measureChain},
	{"ledger", true, "the ledger", measureLedger},
	{"goals", true, "goals", measureGoals},
	{"balance", false, "balances", measureBalance},
	{"leaderboard", false, "the leaderboard", measureLeaderboard},
	{"backfill", false, "backfill", measureBackfill},
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func usualParts() (names []string) {
	for _, p := range parts {
		if p.usual {
			names = append(names, p.name)
		}
	}
	return names
}

// warmUp precedes every measurement.
const warmUp = time.Second

// bench makes the measurements that were asked for, one after another.
func bench(ctx context.Context, g *ground, o options) error {
	for _, p := range parts {
		if !o.has(p.name) {
			continue
		}
		if err := p.measure(ctx, g, o); err != nil {
			return fmt.Errorf("measure %s: %w", p.what, err)
		}
	}
	return nil
}
