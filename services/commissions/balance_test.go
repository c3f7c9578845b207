package commissions

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
)

const balancesPath = "/api/v1/balances"

func TestABalanceShowsEveryAccount(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant, partner, debtor, idle := newID(), newID(), newID(), newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	f.mustEarn(sale(tenant, f.now, soldBy(partner), heldFor(1)), sale(tenant, f.now, soldBy(partner)))
	f.indebt(tenant, debtor, 10_00)
	if err := f.hearCreated(created(tenant, idle)); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uuid.UUID]string{
		partner: `"pending_brl":32.42,"available_brl":32.42,"reserved_brl":0.00,"paid_brl":0.00,"debt_brl":0.00}`,
		debtor:  `"pending_brl":0.00,"available_brl":0.00,"reserved_brl":0.00,"paid_brl":10.00,"debt_brl":10.00}`,
		idle:    `"pending_brl":0.00,"available_brl":0.00,"reserved_brl":0.00,"paid_brl":0.00,"debt_brl":0.00}`,
	} {
		want = fmt.Sprintf(`{"partner_id":%q,`, id) + want
		if answer := f.get(key, balancesPath+"/"+id.String()); answer.Code != http.StatusOK || answer.Body.String() != want {
			t.Errorf("%d %s, want %s", answer.Code, answer.Body, want)
		}
	}
}

func TestTheListOfBalancesHasEveryPartnerWhoEarnedOnce(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant := newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	var want []uuid.UUID
	for range 7 {
		partner := newID()
		f.mustEarn(sale(tenant, f.now, soldBy(partner)), sale(newID(), f.now, soldBy(partner)))
		want = append([]uuid.UUID{partner}, want...)
	}
	if err := f.hearCreated(created(tenant, newID())); err != nil {
		t.Fatal(err)
	}
	var got []uuid.UUID
	for cursor, pages := "", 0; pages < 5; pages++ {
		var list struct {
			Data []struct {
				PartnerID uuid.UUID `json:"partner_id"`
			} `json:"data"`
			NextCursor *string `json:"next_cursor"`
		}
		if err := json.Unmarshal(f.get(key, balancesPath+"?limit=3"+cursor).Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		for _, b := range list.Data {
			got = append(got, b.PartnerID)
		}
		if list.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *list.NextCursor
	}
	if !slices.Equal(got, want) {
		t.Errorf("partners %v, want %v", got, want)
	}
}

func TestThePartnersOfAnotherTenantHaveNoBooksHere(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	owner, stranger, partner := newID(), newID(), newID()
	key := f.key(stranger, auth.CommissionsRead)
	f.wire()
	f.mustEarn(sale(owner, f.now, soldBy(partner)))
	for _, base := range []string{balancesPath + "/", statementsPath + "/"} {
		foreign, unknown := f.get(key, base+partner.String()), f.get(key, base+newID().String())
		refused(t, foreign, http.StatusNotFound, "not_found")
		if a, b := requestID.ReplaceAllString(foreign.Body.String(), ""), requestID.ReplaceAllString(unknown.Body.String(), ""); a != b {
			t.Errorf("%s and %s", a, b)
		}
	}
	if answer := f.get(key, balancesPath); answer.Body.String() != `{"data":[],"next_cursor":null}` {
		t.Errorf("the stranger's list is %s", answer.Body)
	}
}

func TestTheBooksAreReadOnlyWithTheScopeAndTheParametersThatThereAre(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant, partner := newID(), newID()
	key, scopeless := f.key(tenant, auth.CommissionsRead), f.key(tenant, auth.SalesRead)
	f.wire()
	f.mustEarn(sale(tenant, f.now, soldBy(partner)))
	one, lines := balancesPath+"/"+partner.String(), statementsPath+"/"+partner.String()
	for _, target := range []string{balancesPath, one, lines, "/api/v1/ledger/verify"} {
		refused(t, f.get("", target), http.StatusUnauthorized, "unauthorized")
		refused(t, f.get(scopeless, target), http.StatusForbidden, "insufficient_scope")
		refused(t, f.get(key, target+"?filter=1"), http.StatusBadRequest, "invalid_parameter")
		if answer := f.get(key, target); answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s", target, answer.Code, answer.Body)
		}
	}
	for _, target := range []string{
		balancesPath + "/ana", statementsPath + "/ana", balancesPath + "?limit=0", balancesPath + "?cursor=x", one + "?limit=1",
		lines + "?from=2026-07-01", lines + "?to=yesterday", lines + "?from=2026-07-01T00:00:00Z&from=2026-07-01T00:00:00Z", lines + "?limit=1",
	} {
		refused(t, f.get(key, target), http.StatusBadRequest, "invalid_parameter")
	}
	f.deps.Pool.Close()
	for _, target := range []string{balancesPath, one, lines, "/api/v1/ledger/verify"} {
		refused(t, f.get(key, target), http.StatusServiceUnavailable, "unavailable")
	}
}
