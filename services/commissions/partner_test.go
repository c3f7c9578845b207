package commissions

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
)

func created(tenant, partner uuid.UUID) event.Event[event.PartnerCreated] {
	return event.Event[event.PartnerCreated]{TenantID: tenant, Data: event.PartnerCreated{
		PartnerID: partner, Name: "Ana", ReferralCode: "ANA", Status: "pending"}}
}

func changed(tenant, partner uuid.UUID, version int64, name, status string) event.Event[event.PartnerChanged] {
	return event.Event[event.PartnerChanged]{TenantID: tenant, Data: event.PartnerChanged{
		PartnerID: partner, Name: name, ReferralCode: "ANA", Status: status, Version: version}}
}

func (f *fixture) hearCreated(events ...event.Event[event.PartnerCreated]) error {
	return postgres.Transact(f.t.Context(), f.deps.Pool, func(tx *postgres.Tx) error {
		return f.partnerCreated(f.t.Context(), tx, events)
	})
}

func (f *fixture) hearChanged(events ...event.Event[event.PartnerChanged]) error {
	return postgres.Transact(f.t.Context(), f.deps.Pool, func(tx *postgres.Tx) error {
		return f.partnerChanged(f.t.Context(), tx, events)
	})
}

// orders are all orders of the numbers below n.
func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{{}}
	}
	for _, shorter := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

func TestTheHighestVersionOfAPartnerHoldsInEveryOrder(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	changes := func(partner uuid.UUID) []event.Event[event.PartnerChanged] {
		return []event.Event[event.PartnerChanged]{
			changed(tenant, partner, 1, "Ana", "active"),
			changed(tenant, partner, 2, "Ana Lima", "suspended"),
			changed(tenant, partner, 3, "Ana Souza", "active"),
		}
	}
	hold := func(partner uuid.UUID, order string) {
		t.Helper()
		var got string
		err := f.deps.Pool.QueryRow(t.Context(), `
			select concat_ws(',', name, referral_code, status, version) from partners where tenant_id = $1 and partner_id = $2`,
			tenant, partner).Scan(&got)
		if err != nil || got != "Ana Souza,ANA,active,3" {
			t.Errorf("%s: %q, %v", order, got, err)
		}
	}
	for _, order := range orders(4) { // 3 is the creation
		partner := newID()
		for _, i := range order {
			var err error
			if i == 3 {
				err = f.hearCreated(created(tenant, partner))
			} else {
				err = f.hearChanged(changes(partner)[i])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		hold(partner, fmt.Sprint("one by one ", order))
	}
	for _, order := range orders(3) {
		partner := newID()
		batch := make([]event.Event[event.PartnerChanged], len(order))
		for i, j := range order {
			batch[i] = changes(partner)[j]
		}
		if err := f.hearChanged(batch...); err != nil {
			t.Fatal(err)
		}
		if err := f.hearCreated(created(tenant, partner), created(tenant, newID())); err != nil {
			t.Fatal(err)
		}
		hold(partner, fmt.Sprint("at once ", order))
	}
}

func TestACreatedPartnerIsKnownAsItWasCreated(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	partner := created(newID(), newID())
	if err := f.hearCreated(partner); err != nil {
		t.Fatal(err)
	}
	got := f.dump(`select * from partners`)
	want := fmt.Sprintf("(%s,%s,Ana,ANA,pending,0)", partner.TenantID, partner.Data.PartnerID)
	if len(got) != 1 || got[0] != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestAPartnerOfOneTenantIsNoPartnerOfAnother(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	one, other, partner := newID(), newID(), newID()
	if err := f.hearChanged(changed(one, partner, 1, "Ana", "active"), changed(other, partner, 2, "Bia", "banned")); err != nil {
		t.Fatal(err)
	}
	if rows := f.dump(`select * from partners`); len(rows) != 2 {
		t.Errorf("partners %v", rows)
	}
}

func TestAPartnerThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	for name, e := range map[string]event.Event[event.PartnerChanged]{
		"no id":                  changed(newID(), uuid.Nil, 1, "Ana", "active"),
		"no version":             changed(newID(), newID(), 0, "Ana", "active"),
		"a version below 0":      changed(newID(), newID(), -1, "Ana", "active"),
		"a status that is none":  changed(newID(), newID(), 1, "Ana", "retired"),
		"a text with U+0000":     changed(newID(), newID(), 1, "A\x00na", "active"),
		"no text where one must": {TenantID: newID(), Data: event.PartnerChanged{PartnerID: newID(), Status: "active", Version: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := f.hearChanged(e); fault.KindOf(err) != fault.Invalid {
				t.Errorf("refused as %v", err)
			}
		})
	}
	if rows := f.dump(`select * from partners`); len(rows) != 0 {
		t.Errorf("partners %v", rows)
	}
}
