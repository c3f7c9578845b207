package commissions

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
)

var (
	histories = flag.Int("histories", 500, "how many random histories the books are put through")
	seed      = flag.Uint64("seed", 0, "of the random histories; 0: another one each time")
	onlyCrowd = flag.Int("crowd", -1, "the one crowd of histories to be gone through; -1: all")
)

const (
	crowdSize   = 250 // histories that go through the same transactions
	crowdShares = 20  // of them are of one tenant
)

// crowd are histories that happen at once to one service: what comes of them is handled
// together, in batches that mix tenants and partners in whatever way.
type crowd struct {
	*fixture
	random  *source
	tenants []uuid.UUID
	shops   []*shop
	paid    map[uuid.UUID][]string // the end-to-end ids under which each tenant has paid
	end     time.Time              // beyond every hold, and within what the outbox has partitions for
	tables  []string               // in which they have rows
	refused int                    // operations after which every table was compared
}

func newCrowd(f *fixture, random *source, size int) *crowd {
	c := &crowd{fixture: f, random: random, paid: map[uuid.UUID][]string{}, end: f.now.Add(5 * day)}
	for i := range size {
		if i%crowdShares == 0 {
			c.tenants = append(c.tenants, random.id())
		}
		c.shops = append(c.shops, newShop(random, c.tenants[len(c.tenants)-1], f.now))
	}
	return c
}

// some are shops by chance, one in so many.
func (c *crowd) some(in int) (chosen []*shop) {
	for _, s := range c.shops {
		if c.random.IntN(in) == 0 {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

func (c *crowd) goingOn() bool {
	return slices.ContainsFunc(c.shops, func(s *shop) bool { return len(s.coming) > 0 })
}

// step has one kind of thing happen to some of the histories, and says what.
func (c *crowd) step() (what string, err error) {
	switch choice := c.random.IntN(10); {
	case choice == 0:
		c.now = c.now.Add(min(time.Duration(c.random.IntN(36))*time.Hour, c.end.Sub(c.now)))
		c.releaseAll()
		what = "a release"
	case choice == 1:
		what, err = "a repeat", c.repeat()
	case choice < 4:
		what, err = "withdrawals", c.withdraw()
	case choice < 7:
		what, err = "steps of withdrawals", c.settle()
	default:
		what, err = "events", c.events()
	}
	c.covered()
	for _, s := range c.shops {
		s.model.cover()
	}
	return what, err
}

func (c *crowd) releaseAll() {
	for c.mustRelease() == releaseBatch {
	}
	for _, s := range c.shops {
		s.model.release(c.now)
	}
}

// deliver has the service handle the events, those of a kind in one transaction.
func (c *crowd) deliver(happenings ...happening) error {
	var sales []event.Event[event.SaleRecorded]
	var conversions []event.Event[event.ConversionRecorded]
	var goals []event.Event[event.GoalReached]
	var refunds []event.Event[event.SaleRefunded]
	for _, h := range happenings {
		switch e := h.event.(type) {
		case event.Event[event.SaleRecorded]:
			sales = append(sales, e)
		case event.Event[event.ConversionRecorded]:
			conversions = append(conversions, e)
		case event.Event[event.GoalReached]:
			goals = append(goals, e)
		case event.Event[event.SaleRefunded]:
			refunds = append(refunds, e)
		}
	}
	return errors.Join(
		handle(c.fixture, c.earnFromSales, sales...), handle(c.fixture, c.earnFromConversions, conversions...),
		handle(c.fixture, c.earnFromGoals, goals...), handle(c.fixture, c.reverse, refunds...))
}

// events has the next events of some histories come, those that earn before the others. A
// refund that overtook its sale is refused, with whatever is in its batch, and comes again.
func (c *crowd) events() error {
	var earnings, refunds []happening
	for _, s := range c.some(1 + c.random.IntN(3)) {
		for _, h := range s.next(1 + c.random.IntN(3)) {
			if h.after == uuid.Nil {
				earnings = append(earnings, h)
			} else {
				refunds = append(refunds, h)
			}
		}
	}
	if err := c.deliver(earnings...); err != nil {
		return err
	}
	for _, h := range earnings {
		h.happened()
	}
	var early, due []happening
	for _, h := range refunds {
		if h.early() {
			h.coming = append(h.coming, h)
			early = append(early, h)
		} else {
			due = append(due, h)
		}
	}
	if len(early) > 0 {
		with := due[:c.random.IntN(len(due)+1)]
		if err := c.refuse(fault.NotYet, append(slices.Clone(with), early[c.random.IntN(len(early))])...); err != nil {
			return err
		}
	}
	if err := c.deliver(due...); err != nil {
		return err
	}
	for _, h := range due {
		h.happened()
	}
	return nil
}

// repeat delivers some events again which no receipt has kept away.
func (c *crowd) repeat() error {
	for _, s := range c.some(50) {
		if len(s.past) == 0 {
			continue
		}
		h := s.past[c.random.IntN(len(s.past))]
		if h.moves {
			if err := c.refuse(fault.Conflict, h); err != nil {
				return err
			}
		} else if err := c.sampled(2, func() error { return c.deliver(h) }, s.tenant); err != nil {
			return err
		}
	}
	return nil
}

// refuse delivers what must be refused and leave everything as it is.
func (c *crowd) refuse(want fault.Kind, happenings ...happening) error {
	tenants := map[uuid.UUID]bool{}
	for _, h := range happenings {
		tenants[h.tenant] = true
	}
	return c.sampled(4, func() error {
		if err := c.deliver(happenings...); fault.KindOf(err) != want {
			return fmt.Errorf("refused as %v, want kind %d", err, want)
		}
		return nil
	}, slices.Collect(maps.Keys(tenants))...)
}

// sampled does what must change nothing, and one time in so many compares every table.
// Each time, what it changed after all would make the books differ from the model.
func (c *crowd) sampled(in int, do func() error, tenants ...uuid.UUID) error {
	if c.random.IntN(in) > 0 {
		return do()
	}
	return c.unchanged(do, tenants...)
}

// unchanged does what must leave every row of the tenants as it is.
func (c *crowd) unchanged(do func() error, tenants ...uuid.UUID) error {
	before := c.digest(tenants)
	if err := do(); err != nil {
		return err
	}
	c.refused++
	if after := c.digest(tenants); !slices.Equal(before, after) {
		return fmt.Errorf("what changes nothing left a trace: there was\n%s\nand there is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	return nil
}

// tenantTables are all tables in which a tenant's rows stand.
const tenantTables = `
select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and a.attname = 'tenant_id'`

// digest is how many rows each table has of the tenants, and a hash of all that they say.
func (c *crowd) digest(tenants []uuid.UUID) (digests []string) {
	c.t.Helper()
	if c.tables == nil {
		c.tables = c.dump(tenantTables)
	}
	var queries []string
	for _, table := range c.tables {
		queries = append(queries, fmt.Sprintf(`select '%[1]s', count(*), sum(hashtextextended(r::text, 0)) from %[1]s r where tenant_id = any (%[2]s)`,
			strings.Trim(table, "()"), quotedIDs(tenants)))
	}
	return c.dump(strings.Join(queries, " union all "))
}

// quotedIDs are the ids as an array of SQL.
func quotedIDs(ids []uuid.UUID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return "'{" + strings.Join(texts, ",") + "}'::uuid[]"
}

// check compares the books with what all histories must have made of them.
func (c *crowd) check() error {
	of := " where tenant_id = any (" + quotedIDs(c.tenants) + ")"
	got := slices.Concat(
		c.dump(`select partner_id, `+balanceColumns+`, uncovered_centavos from accounts`+of),
		c.dump(`select commission_id, commission_amount_centavos, reversed_centavos,
			case when commission_amount_centavos = 0 and status <> 'pending' then 'worthless' else status end from commissions`+of),
		c.dump(`select withdrawal_id, amount_centavos, status from withdrawals`+of))
	var want []string
	for _, s := range c.shops {
		want = append(want, s.model.rows()...)
	}
	return compare(got, want)
}

// compare names rows that are not there or should not be.
func compare(got, want []string) error {
	must := map[string]bool{}
	for _, row := range want {
		must[row] = true
	}
	var wrong []string
	for _, row := range got {
		if !must[row] {
			wrong = append(wrong, "there is "+row)
		}
		delete(must, row)
	}
	for _, row := range slices.Sorted(maps.Keys(must)) {
		wrong = append(wrong, "there should be "+row)
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong[:min(20, len(wrong))], "\n"))
	}
	return nil
}

// told is how many events of each name the histories must have brought about.
func (c *crowd) told() map[string]int {
	told := map[string]int{}
	for _, s := range c.shops {
		for name, n := range s.model.told {
			told[name] += n
		}
	}
	return told
}

// audit holds every rule against the books of each tenant, and counts what was told.
func (c *crowd) audit(told map[string]int) error {
	var want []string
	for name, n := range told {
		want = append(want, fmt.Sprintf("(%s,%d)", name, n))
	}
	slices.Sort(want)
	if got := c.dump(`select name, count(*) from outbox where name <> 'window.commissions' group by name`); !slices.Equal(got, want) {
		return fmt.Errorf("told are %v, must be %v", got, want)
	}
	for _, tenant := range c.tenants {
		found, err := c.verify(c.t.Context(), tenant)
		if err != nil {
			return err
		}
		for _, held := range found.Checks {
			if !held.OK {
				return fmt.Errorf("tenant %s: %s: %s", tenant, held.Name, held.Detail)
			}
		}
	}
	return nil
}

// live goes through all of the histories.
func (c *crowd) live() error {
	for round := 0; c.goingOn(); round++ {
		what, err := c.step()
		if err == nil && round%3 == 0 {
			err = c.check()
		}
		if err != nil {
			return fmt.Errorf("after %d rounds, at %s: %w", round, what, err)
		}
	}
	c.now = c.end
	c.releaseAll()
	c.covered()
	for _, s := range c.shops {
		s.model.cover()
	}
	if err := errors.Join(c.check(), c.audit(c.told())); err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	if left := c.dump(`select * from holds`); len(left) != 0 {
		return fmt.Errorf("%v is held for ever", left)
	}
	return nil
}

// Each crowd has a database of its own, so that several are gone through at once.
func TestTheBooksHoldThroughEveryHistory(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	for i := range (*histories + crowdSize - 1) / crowdSize {
		if *onlyCrowd >= 0 && *onlyCrowd != i {
			continue
		}
		t.Run(fmt.Sprint("crowd ", i), func(t *testing.T) {
			t.Parallel()
			c := newCrowd(prepare(t, nowhere).wire(), newSource(*seed, uint64(i)), min(crowdSize, *histories-i*crowdSize))
			if err := c.live(); err != nil {
				t.Fatalf("go test -run %s -histories %d -seed %d -crowd %d: %v", "TestTheBooksHoldThroughEveryHistory", *histories, *seed, i, err)
			}
			t.Logf("%d histories; all tables were compared after %d operations that change nothing", len(c.shops), c.refused)
		})
	}
}
