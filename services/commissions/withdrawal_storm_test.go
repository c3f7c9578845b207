package commissions

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
)

// together does the work so many times at once, from two replicas, none beginning before
// all are ready to.
func (f *fixture) together(times int, work func(replica *fixture, i int)) {
	f.t.Helper()
	replicas := []*fixture{f, f.replica()}
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i := range times {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-begin
			work(replicas[i%2], i)
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
}

// holdBook locks a partner's book until it is let go, and counts who waits for a lock
// meanwhile; both by connections of its own.
func (f *fixture) holdBook(tenant, partner uuid.UUID) (waiting func() int, letGo func()) {
	f.t.Helper()
	pool := f.replica().deps.Pool
	tx, err := pool.Begin(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	tag, err := tx.Exec(f.t.Context(), "select from accounts where tenant_id = $1 and partner_id = $2 for update", tenant, partner)
	if err != nil || tag.RowsAffected() != 1 {
		f.t.Fatal(tag, err)
	}
	waiting = func() (n int) {
		f.t.Helper()
		if err := pool.QueryRow(f.t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&n); err != nil {
			f.t.Fatal(err)
		}
		return n
	}
	return waiting, func() {
		if err := tx.Rollback(f.t.Context()); err != nil {
			f.t.Error(err)
		}
	}
}

// The book is held until several of them have come to it, so that a service that decided
// on a balance which it has not locked would grant more than one.
func TestOfSixtyFourWithdrawalsOfTheWholeBalanceOneSucceeds(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	errs := make([]error, 64)
	waiting, letGo := w.holdBook(w.tenant, w.partner)
	var asked sync.WaitGroup
	asked.Go(func() {
		w.together(len(errs), func(replica *fixture, i int) { _, _, errs[i] = replica.ask(w.tenant, ask(w.partner, 32_42)) })
	})
	testkit.Eventually(t, soon, "some withdrawals wait for the partner's book", func() bool { return waiting() > 1 })
	letGo()
	asked.Wait()
	granted := 0
	for _, err := range errs {
		switch {
		case err == nil:
			granted++
		case fault.Of(err) == nil || fault.Of(err).Code != "insufficient_balance":
			t.Error(err)
		}
	}
	if got := w.books(w.tenant, w.partner); granted != 1 || got != (balances{Reserved: 32_42}) {
		t.Errorf("%d succeeded, the partner has %+v", granted, got)
	}
	w.balanced(w.tenant)
}

func TestManyWithdrawalsAtOnceNeverReserveMoreThanThereIs(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	reservedInAll := make([]money.BRL, 64)
	w.together(len(reservedInAll), func(replica *fixture, i int) {
		amount := money.BRL(1 + rand.IntN(3_00))
		if _, _, err := replica.ask(w.tenant, ask(w.partner, amount)); err == nil {
			reservedInAll[i] = amount
		} else if fault.Of(err) == nil || fault.Of(err).Code != "insufficient_balance" {
			t.Error(err)
		}
	})
	var sum money.BRL
	for _, amount := range reservedInAll {
		sum += amount
	}
	if got := w.books(w.tenant, w.partner); got != (balances{Available: 32_42 - sum, Reserved: sum}) {
		t.Errorf("%s was granted, the partner has %+v", sum, got)
	}
	w.balanced(w.tenant)
}

// Half of the calls name another partner, so that not all of them wait for one book.
func TestOfManyCallsWithOneReferenceOneReserves(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	other := newID()
	w.mustEarn(sale(w.tenant, w.now, soldBy(other)))
	for round := range 10 {
		fresh, ids := make([]bool, 32), make([]string, 32)
		w.together(len(ids), func(replica *fixture, i int) {
			r := ask(w.partner, 10)
			if i%4 > 1 {
				r.PartnerID = &other
			}
			r.ExternalRef = fmt.Sprint("round ", round)
			made, first, err := replica.ask(w.tenant, r)
			if err != nil {
				t.Error(err)
				return
			}
			fresh[i], ids[i] = first, made.ID.String()
		})
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != 1 || len(slices.DeleteFunc(fresh, func(first bool) bool { return !first })) != 1 {
			t.Fatalf("%d withdrawals were made", n)
		}
	}
	w.balanced(w.tenant)
}

// Paying, failing, cancelling and approving the same withdrawals races with refunds and
// sales of their partners: whatever wins, each withdrawal has one end, each step is told
// once, and the books balance.
func TestStepsRefundsAndSalesRaceAndTheBooksBalance(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	for range 12 {
		partner := newID() // who owes nothing of an earlier round
		sold := sale(w.tenant, w.now, soldBy(partner))
		w.mustEarn(sold)
		id := w.mustAsk(w.tenant, partner, 20_00)
		if rand.IntN(2) == 0 {
			w.mustStep(w.tenant, id, statusApproved)
		}
		steps := []string{statusApproved, statusApproved, statusPaid, statusPaid, statusFailed, statusCancelled, statusRejected}
		w.together(len(steps)+3, func(replica *fixture, i int) {
			switch {
			case i < len(steps):
				if made := replica.step(w.tenant, id, steps[i]); made.err != nil && fault.KindOf(made.err) != fault.Conflict {
					t.Error(made.err)
				}
			case i == len(steps):
				if err := handle(replica, replica.reverse, refundOf(sold, 32_42)); err != nil {
					t.Error(err)
				}
			case i == len(steps)+1:
				if err := handle(replica, replica.earnFromSales, sale(w.tenant, w.now, soldBy(partner), worth(100, 50_0000, 50))); err != nil {
					t.Error(err)
				}
			default:
				if _, err := replica.coverDue(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		w.balanced(w.tenant)
	}
	told := w.dump(`select name from outbox where name = '` + event.NameWithdrawalStatusChanged + `'`)
	if states := w.dump(`select 1 from withdrawal_states where status <> 'requested'`); len(told) != len(states) {
		t.Errorf("%d changes were told, %d made", len(told), len(states))
	}
}

// Many partners are paid under the same few end-to-end ids at once, in batches that name
// them in every order: each id pays one withdrawal.
func TestOfManyPaymentsUnderOneEndToEndIDOneIsMade(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	const calls, each = 12, 4
	batches := make([][]*transition, calls)
	for i := range batches {
		for _, n := range rand.Perm(each) {
			partner := newID()
			w.mustEarn(sale(w.tenant, w.now, soldBy(partner)))
			id := w.mustAsk(w.tenant, partner, 10_00)
			w.mustStep(w.tenant, id, statusApproved)
			paid := &transition{id: id, to: statusPaid}
			paid.EndToEndID = new(fmt.Sprintf("E12345678202607141305abcDEF%05d", n))
			batches[i] = append(batches[i], paid)
		}
	}
	w.together(calls, func(replica *fixture, i int) {
		if err := replica.change(t.Context(), w.tenant, operatorKey, batches[i]); err != nil {
			t.Error(err)
		}
	})
	made := map[string]int{}
	for _, paid := range slices.Concat(batches...) {
		switch {
		case paid.err == nil:
			made[*paid.EndToEndID]++
		case fault.Of(paid.err) == nil || fault.Of(paid.err).Code != "conflict":
			t.Error(paid.err)
		}
	}
	for id, times := range made {
		if times != 1 {
			t.Errorf("%s has paid %d withdrawals", id, times)
		}
	}
	if len(made) != each {
		t.Errorf("%d payments were made of %d", len(made), each)
	}
	w.balanced(w.tenant)
}

func TestABatchOfStepsNeverWaitsInACircle(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	var transitions []*transition
	for range 40 {
		partner := newID()
		w.mustEarn(sale(w.tenant, w.now, soldBy(partner)))
		id := w.mustAsk(w.tenant, partner, 10_00)
		w.mustStep(w.tenant, id, statusApproved)
		transitions = append(transitions, &transition{id: id, to: statusPaid})
	}
	made := make([]int, 8)
	w.together(len(made), func(replica *fixture, i int) {
		mine := make([]*transition, len(transitions))
		for at, from := range rand.Perm(len(transitions)) {
			mine[at] = &transition{id: transitions[from].id, to: statusPaid}
		}
		if err := replica.change(t.Context(), w.tenant, operatorKey, mine); err != nil {
			t.Error(err)
		}
		for _, m := range mine {
			if m.err != nil {
				t.Error(m.err)
			} else if !m.repeated {
				made[i]++
			}
		}
	})
	sum := 0
	for _, n := range made {
		sum += n
	}
	if sum != len(transitions) {
		t.Errorf("%d payments were made of %d: %v", sum, len(transitions), made)
	}
	w.balanced(w.tenant)
}

func TestThePayoutListIsWholeAndSafeToOpen(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	w.mustEarn(sale(w.tenant, w.now, soldBy(w.partner), worth(1_000_000_00, 50_0000, 500_000_00)))
	names := map[string]string{
		"Ana": "Ana", "=1+1": "'=1+1", "+55": "'+55", "-2": "'-2", "@sum(a1)": "'@sum(a1)", " =cmd|' /C calc'!A0": "' =cmd|' /C calc'!A0",
		"\tx": "'\tx", "＝1": "'＝1", `O"Neil, J. ` + "\r\n" + `& Filhos`: `O"Neil, J. ` + "\r\n" + `& Filhos`, "a=b": "a=b",
	}
	partners := map[string]string{}
	for name, want := range names {
		partner := newID()
		w.knows(partner, name, newID().String(), "active", 0)
		w.mustEarn(sale(w.tenant, w.now, soldBy(partner)))
		id := w.mustAsk(w.tenant, partner, 1_00)
		w.mustStep(w.tenant, id, statusApproved)
		partners[id.String()] = want
	}
	banned := newID()
	w.knows(banned, "Banned", "banned", "active", 0)
	w.mustEarn(sale(w.tenant, w.now, soldBy(banned)), sale(newID(), w.now, soldBy(w.partner)))
	w.mustStep(w.tenant, w.mustAsk(w.tenant, banned, 1_00), statusApproved)
	w.exec(`update partners set status = 'banned' where partner_id = $1`, banned)
	w.mustAsk(w.tenant, w.partner, 1_00)

	list := w.payouts(w.approver, "?status=approved")
	if len(list) != len(names)+1 || strings.Join(list[0], ",") != "name,pix_key_type,pix_key,amount_brl,withdrawal_id" {
		t.Fatalf("the list is %v", list)
	}
	for _, record := range list[1:] {
		if want := partners[record[4]]; strings.ReplaceAll(record[0], "\n", "\r\n") != strings.ReplaceAll(strings.ReplaceAll(want, "\r\n", "\n"), "\n", "\r\n") || record[1] != "cpf" || record[2] != "52998224725" || record[3] != "1.00" {
			t.Errorf("%q, want the name %q", record, want)
		}
	}
	for target, status := range map[string]int{"": 400, "?status=paid": 400, "?status=approved&limit=5": 400, "?status=approved&cursor=x": 400} {
		if answer := w.getCSV(w.approver, withdrawalsPath+target); answer.Code != status {
			t.Errorf("%s: %d %s", target, answer.Code, answer.Body)
		}
	}
	refused(t, w.getCSV(w.reader, withdrawalsPath+"?status=approved"), 403, "insufficient_scope")
}

func TestThePayoutListIsReadInPiecesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	const rows = 2*payoutChunk + 7
	id := newID()
	key, err := w.sealKey(w.tenant, id, "52998224725")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range rows {
		ids = append(ids, newID().String())
	}
	w.exec(`insert into withdrawals select $1, i::uuid, i, $2, 1, 'cpf', $3, '***', 'approved', null, null, null, null, $4, $4 from unnest($5::text[]) i`,
		w.tenant, w.partner, key, w.now, ids)
	seen := map[string]bool{}
	err = w.eachPayout(t.Context(), w.tenant, withdrawalFilter{status: new(statusApproved)}, func(p payout) error {
		seen[p.id.String()] = true
		return nil
	})
	if err != nil || len(seen) != rows {
		t.Errorf("%d of %d rows, %v", len(seen), rows, err)
	}
}
