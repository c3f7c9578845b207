package commissions

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
)

func TestBooksThatWereCookedAreFound(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		cook string
		want []string
	}{
		"a balance": {`update accounts set available_centavos = available_centavos + 1 where partner_id = $1`,
			[]string{"sum_of_all_accounts_is_zero", "balances_equal_transfers"}},
		"two balances that cancel out": {`update accounts set available_centavos = available_centavos - 1, pending_centavos = pending_centavos + 1 where partner_id = $1`,
			[]string{"balances_equal_transfers", "pending_equals_held_commissions"}},
		"an account that is gone": {`delete from accounts where partner_id = $1`,
			[]string{"sum_of_all_accounts_is_zero", "balances_equal_transfers", "pending_equals_held_commissions", "reserved_and_paid_equal_withdrawals"}},
		"the amount of a transfer": {`update transfers set amount_centavos = amount_centavos + 1 where kind = 'commission' and partner_id = $1`,
			[]string{"sum_of_all_accounts_is_zero", "balances_equal_transfers", "running_balances_are_continuous", "commissions_equal_transfers"}},
		"a transfer and its balance": {`
			with t as (update transfers set amount_centavos = amount_centavos + 1, available_centavos = available_centavos + 1
				where partner_id = $1 and kind = 'commission' and to_account = 'available' returning tenant_id, partner_id)
			update accounts a set available_centavos = available_centavos + 1 from t where a.tenant_id = t.tenant_id and a.partner_id = t.partner_id`,
			[]string{"running_balances_are_continuous", "commissions_equal_transfers"}},
		"a transfer that is gone": {`delete from transfers where kind = 'commission' and partner_id = $1`,
			[]string{"sum_of_all_accounts_is_zero", "balances_equal_transfers", "running_balances_are_continuous", "commissions_equal_transfers"}},
		"a running balance": {`update transfers set debt_centavos = debt_centavos + 1 where kind = 'commission' and partner_id = $1`,
			[]string{"running_balances_are_continuous"}},
		"the amount of a commission": {`update commissions set commission_amount_centavos = commission_amount_centavos + 1 where status = 'available' and partner_id = $1`,
			[]string{"commissions_equal_transfers"}},
		"what is reversed of it": {`update commissions set reversed_centavos = reversed_centavos + 1 where status = 'available' and partner_id = $1`,
			[]string{"commissions_equal_transfers"}},
		"a commission that is gone": {`delete from commissions where status = 'available' and partner_id = $1`,
			[]string{"commissions_equal_transfers"}},
		"the status of a commission": {`update commissions set status = 'pending' where status = 'available' and partner_id = $1`,
			[]string{"pending_equals_held_commissions"}},
		"a balance below zero": {`update accounts set reserved_centavos = -1 where partner_id = $1`,
			[]string{"sum_of_all_accounts_is_zero", "balances_equal_transfers", "no_balance_is_below_zero", "reserved_and_paid_equal_withdrawals"}},
		"money and debt at once": {`update accounts set available_centavos = available_centavos + 5, debt_centavos = debt_centavos + 5 where partner_id = $1`,
			[]string{"balances_equal_transfers", "nothing_available_with_debt"}},
		"what a withdrawal is of": {`update withdrawals set amount_centavos = amount_centavos + 1 where status = 'requested' and partner_id = $1`,
			[]string{"reserved_and_paid_equal_withdrawals", "withdrawals_equal_transfers"}},
		"the status of a withdrawal": {`update withdrawals set status = 'cancelled' where status = 'requested' and partner_id = $1`,
			[]string{"reserved_and_paid_equal_withdrawals", "withdrawals_equal_transfers"}},
		"a withdrawal that is gone": {`delete from withdrawals where status = 'paid' and partner_id = $1`,
			[]string{"reserved_and_paid_equal_withdrawals", "withdrawals_equal_transfers"}},
		"what covers nothing yet": {`update accounts set uncovered_centavos = uncovered_centavos + 1 where partner_id = $1`,
			[]string{"paid_equals_covered_commissions"}},
		"nothing": {`select $1::uuid`, nil},
	}
	f := prepare(t, nowhere)
	other, tenants, keys := newID(), map[string]uuid.UUID{}, map[string]string{}
	others := f.key(other, auth.CommissionsRead)
	for name := range rows {
		tenants[name] = newID()
		keys[name] = f.key(tenants[name], auth.CommissionsRead)
	}
	f.wire()
	f.mustEarn(sale(other, f.now))
	partners := map[string]uuid.UUID{}
	for name, tenant := range tenants {
		partner := newID()
		held, sold := sale(tenant, f.now, soldBy(partner), heldFor(1)), sale(tenant, f.now, soldBy(partner))
		f.mustEarn(held, sold)
		f.mustReverse(refundOf(sold, 10_00), refundOf(held, 10_00))
		f.mustAsk(tenant, partner, 1_00)
		f.mustStep(tenant, f.mustAsk(tenant, partner, 2_00), statusApproved, statusPaid)
		partners[name] = partner
	}
	f.exec(`alter table transfers disable trigger user`)
	f.exec(`alter table accounts drop constraint accounts_reserved, drop constraint accounts_repaid`)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			f.exec(row.cook, partners[name])
			found := f.verified(keys[name])
			var wrong []string
			for _, c := range found.Checks {
				if !c.OK {
					wrong = append(wrong, c.Name)
				}
				if c.Detail == "" || c.OK != !strings.Contains(c.Detail, "wrong") {
					t.Errorf("%s: %t, %s", c.Name, c.OK, c.Detail)
				}
			}
			if !slices.Equal(wrong, row.want) || found.OK != (len(row.want) == 0) {
				t.Errorf("%v is wrong, want %v; %+v", wrong, row.want, found)
			}
			if !f.verified(others).OK {
				t.Error("another tenant's books are called wrong")
			}
		})
	}
}

type verified struct {
	OK        bool   `json:"ok"`
	CheckedAt string `json:"checked_at"`
	Checks    []struct {
		Name   string `json:"name"`
		OK     bool   `json:"ok"`
		Detail string `json:"detail"`
	} `json:"checks"`
}

func (f *fixture) verified(key string) (found verified) {
	f.t.Helper()
	answer := f.get(key, "/api/v1/ledger/verify")
	if err := json.Unmarshal(answer.Body.Bytes(), &found); err != nil || answer.Code != http.StatusOK || len(found.Checks) != len(checks) || found.CheckedAt == "" {
		f.t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return found
}

func TestBooksInWhichNothingIsAreInOrder(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	key := f.key(newID(), auth.CommissionsRead)
	f.wire()
	if found := f.verified(key); !found.OK {
		t.Errorf("%+v", found)
	}
}
