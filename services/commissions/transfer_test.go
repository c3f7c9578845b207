package commissions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

func TestNobodyChangesOrRemovesATransfer(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	f.mustEarn(sale(newID(), f.now))
	before := f.dump(`select * from transfers`)
	for _, statement := range []string{
		`update transfers set amount_centavos = amount_centavos + 1`,
		`update transfers set posted_at = posted_at where false`,
		`delete from transfers`,
		`delete from transfers where false`,
		`truncate transfers`,
		`insert into transfers select * from transfers on conflict (tenant_id, kind, reference) do update set amount_centavos = 1`,
	} {
		if _, err := f.deps.Pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "never changed or removed") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if after := f.dump(`select * from transfers`); len(after) != 1 || after[0] != before[0] {
		t.Errorf("transfers were %v and are %v", before, after)
	}
}

// post makes one transfer in a transaction of its own.
func (f *fixture) post(key partnerKey, kind movement, reference uuid.UUID, from, to account, amount int64) error {
	return postgres.Transact(f.t.Context(), f.deps.Pool, func(tx *postgres.Tx) error {
		l, err := f.openBooks(f.t.Context(), tx, map[partnerKey]bool{key: true})
		if err != nil {
			return err
		}
		l.post(l.books[key], kind, reference, uuid.Nil, from, to, money.BRL(amount))
		l.keep(tx)
		return nil
	})
}

func TestATransferOfAKindIsMadeOnceForItsCause(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	key, cause := partnerKey{newID(), newID()}, newID()
	if err := f.post(key, movedCommission, cause, expense, available, 5); err != nil {
		t.Fatal(err)
	}
	before := f.state()
	for _, again := range []partnerKey{key, {key.tenant, newID()}} {
		if err := f.post(again, movedCommission, cause, expense, pending, 7); fault.KindOf(err) != fault.Conflict {
			t.Errorf("again: %v", err)
		}
	}
	same(t, before, f.state())
	if err := f.post(partnerKey{newID(), key.id}, movedCommission, cause, expense, available, 5); err != nil {
		t.Errorf("of another tenant: %v", err)
	}
}

func TestTheDatabaseKnowsWhichWayMoneyMayGo(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	key := partnerKey{newID(), newID()}
	for _, way := range []struct {
		kind     movement
		from, to account
	}{
		{movedCommission, expense, paid}, {movedCommission, debt, available}, {movedRelease, expense, available}, {movedRelease, pending, expense},
		{movedReversal, debt, expense}, {movedReversal, reserved, expense}, {movedReversalDebt, available, expense},
		{movedRepayment, debt, available}, {"withdrawal", available, paid}, {"withdrawal_paid", available, paid}, {"gift", expense, available},
	} {
		if err := f.post(key, way.kind, newID(), way.from, way.to, 5); !postgres.Violates(err, "transfers_way") {
			t.Errorf("%s from %s to %s: %v", way.kind, way.from, way.to, err)
		}
	}
}

func TestTheDatabaseKeepsBalancesThatCannotBe(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	for constraint, set := range map[string]string{
		"accounts_pending": "pending_centavos = -1", "accounts_available": "available_centavos = -1", "accounts_reserved": "reserved_centavos = -1",
		"accounts_paid": "paid_centavos = -1", "accounts_debt": "debt_centavos = -1", "accounts_repaid": "available_centavos = 1, debt_centavos = 1",
	} {
		f.mustEarn(sale(newID(), f.now))
		if _, err := f.deps.Pool.Exec(t.Context(), `update accounts set `+set); !postgres.Violates(err, constraint) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func TestAPartnersTransfersHaveOneOrderWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	start := f.now
	for _, at := range []time.Duration{0, 0, -time.Hour, time.Second, -time.Second} {
		f.now = start.Add(at)
		f.mustEarn(sale(tenant, f.now, soldBy(partner)), sale(tenant, f.now, soldBy(partner)))
	}
	f.balanced(tenant) // the running balances too, in the order of their times
	if n := len(f.dump(`select distinct posted_at from transfers`)); n != 10 {
		t.Errorf("10 transfers have %d times", n)
	}
}
