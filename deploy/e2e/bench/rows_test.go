package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
	"partilha.dev/services/commissions"
	"partilha.dev/services/goals"
)

func TestBooksOfThePastBalance(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, commissions.Migrations...)
	const transfers = 3 * transfersEach
	if err := loadRows(t.Context(), url, booksTables, pastBooks(uuid.New(), transfers)...); err != nil {
		t.Fatal(err)
	}
	conn := connectTo(t, url)
	for _, c := range []struct {
		what, query string
		want        int64
	}{
		{"transfers", `select count(*) from transfers`, transfers},
		{"transfers of a commission with that amount",
			`select count(*) from transfers t join commissions c using (tenant_id, partner_id, commission_id)
			where t.amount_centavos = c.commission_amount_centavos and t.posted_at = c.created_at`, transfers},
		{"partners", `select count(*) from accounts`, transfers / transfersEach},
		{"transfers that do not go on from the one before",
			`select count(*) from (select available_centavos - amount_centavos <> lag(available_centavos, 1, 0::bigint) over (partition by partner_id order by posted_at) as broken
			from transfers) one where broken`, 0},
		{"accounts that are not what was moved into them",
			`select count(*) from accounts a where available_centavos <> (select sum(amount_centavos) from transfers t where t.partner_id = a.partner_id)`, 0},
	} {
		if got := numberIn(t, conn, c.query); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}

	partner := loadedPartner(transfers)
	random, met := rand.New(rand.NewPCG(1, 1)), map[uuid.UUID]bool{}
	for range 100 {
		id := partner(random)
		met[id] = true
		available := money.BRL(numberIn(t, conn, `select available_centavos from accounts where partner_id = $1`, id))
		if want := fmt.Sprintf(`"available_brl":%s,`, available); loadedBalance() != want {
			t.Fatalf("partner %s is said to have %s, and has %s", id, loadedBalance(), want)
		}
	}
	if len(met) != transfers/transfersEach {
		t.Errorf("at random come %d partners, want %d", len(met), transfers/transfersEach)
	}
}

func TestSalesOfThePastAreSpreadOverPartnersAndAYear(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, goals.Migrations...)
	if err := loadRows(t.Context(), url, []string{"facts"}, pastSales(uuid.New(), 1000, 10)); err != nil {
		t.Fatal(err)
	}
	conn := connectTo(t, url)
	for _, c := range []struct {
		what, query string
		want        int64
	}{
		{"sales", `select count(*) from facts where occurred_at between now() - interval '366 days' and now()`, 1000},
		{"partners", `select count(*) from (select partner_id from facts group by partner_id having count(*) = 100) one`, 10},
		{"amounts", `select count(distinct amount_centavos) from facts`, 1000},
	} {
		if got := numberIn(t, conn, c.query); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

func TestRowsThatAreRefusedFailTheLoading(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, goals.Migrations...)
	err := loadRows(t.Context(), url, nil, loading{`insert into facts (tenant_id) values ($1)`, []any{uuid.New()}})
	if err == nil || !strings.Contains(err.Error(), "load rows of the past") {
		t.Errorf("the error is %v", err)
	}
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

func numberIn(t *testing.T, conn *pgx.Conn, query string, arguments ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query, arguments...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
