package sales

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func TestAConversionIsFoundByEveryFilter(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	convert := func(ref string, changes ...string) string {
		return f.post("/api/v1/conversions", f.conversion(ref, changes...)).want(201).text("conversion_id")
	}
	lead := convert("a b+c%")
	trial := convert("A B+C%", "type", `"trial"`, "plan_id", "")
	const none = "01890000-0000-7000-8000-000000000000"
	for query, want := range map[string][]string{
		"":                                         {trial, lead},
		"external_ref=a%20b%2Bc%25":                {lead},
		"external_ref=nothing":                     {},
		"type=trial":                               {trial},
		"type=custom":                              {},
		"partner_id=" + f.partner:                  {trial, lead},
		"partner_id=" + none:                       {},
		"campaign_id=" + f.campaign:                {trial, lead},
		"campaign_id=" + none:                      {},
		"partner_id=" + f.partner + "&type=lead":   {lead},
		"campaign_id=" + f.campaign + "&type=lead": {lead},
		"partner_id=" + f.partner + "&campaign_id=" + none:                                                {},
		"partner_id=" + f.partner + "&campaign_id=" + f.campaign + "&type=trial":                          {trial},
		"external_ref=a%20b%2Bc%25&type=trial":                                                            {},
		"external_ref=a%20b%2Bc%25&partner_id=" + none:                                                    {},
		"external_ref=a%20b%2Bc%25&campaign_id=" + none:                                                   {},
		"external_ref=a%20b%2Bc%25&type=lead&campaign_id=" + f.campaign + "&partner_id=" + f.partner + "": {lead},
	} {
		page := f.get("/api/v1/conversions?" + query).want(200).object()
		found := []string{}
		for _, row := range page["data"].([]any) {
			found = append(found, row.(map[string]any)["conversion_id"].(string))
		}
		if fmt.Sprint(found) != fmt.Sprint(want) || page["next_cursor"] != nil {
			t.Errorf("%s finds %v and then %v, want %v", query, found, page["next_cursor"], want)
		}
	}
	for _, query := range []string{"type=Lead", "type=", "partner_id=x", "campaign_id=", "external_ref=%00", "external_ref=%ff", "plan_id=" + f.plan} {
		f.get("/api/v1/conversions?"+query).refused(400, "invalid_parameter")
	}
}

// manyConversions fills the table with a hundred thousand of them, of four tenants.
const manyConversions = `
insert into conversions (tenant_id, conversion_id, external_ref, type, referral_code, partner_id, campaign_id, occurred_at, created_at)
select md5((n % 4)::text)::uuid, gen_random_uuid(), n::text, ('{lead,signup,trial,custom}'::text[])[1 + n / 4 % 4],
       'x', md5((n / 4 % 50)::text)::uuid, md5((n / 4 % 30)::text)::uuid, now(), now()
from generate_series(1, 100000) n`

func TestEveryListOfConversionsWalksAlongAnIndex(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for _, statement := range []string{manyConversions, "analyze conversions"} {
		if _, err := f.deps.Pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	nobody := pgx.NamedArgs{
		"tenant_id": "cfcd2084-95d5-65ef-66e7-dff9f98764da", "after": nil, "limit": 26, "external_ref": nil, "partner_id": nil, "campaign_id": nil, "type": nil,
	}
	someone := "c4ca4238-a0b9-2382-0dcc-509a6f75849b"
	for name, row := range map[string]struct {
		filters pgx.NamedArgs
		index   string
	}{
		"no filter":     {nil, "conversions_pkey"},
		"a reference":   {pgx.NamedArgs{"external_ref": "4"}, "conversions_external_ref"},
		"a partner":     {pgx.NamedArgs{"partner_id": someone}, "conversions_partner"},
		"a campaign":    {pgx.NamedArgs{"campaign_id": someone}, "conversions_campaign"},
		"a type":        {pgx.NamedArgs{"type": "trial"}, "conversions_type"},
		"the next page": {pgx.NamedArgs{"partner_id": someone, "after": uuid.Max}, "conversions_partner"},
	} {
		t.Run(name, func(t *testing.T) {
			args := maps.Clone(nobody)
			maps.Copy(args, row.filters)
			rows, err := f.deps.Pool.Query(t.Context(), "explain "+listConversionsQuery, pgx.QueryExecModeCacheDescribe, args)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(lines, "\n")
			if walks := row.filters["external_ref"] != nil || !strings.Contains(plan, "Sort"); !walks || !strings.Contains(plan, "using "+row.index+" on") || strings.Contains(plan, "Filter") {
				t.Errorf("planned as\n%s", plan)
			}
		})
	}
	for range 10 {
		f.get("/api/v1/conversions?type=lead").want(200)
	}
	for _, conn := range f.deps.Pool.AcquireAllIdle(t.Context()) {
		defer conn.Release()
		rows, err := conn.Query(t.Context(), "select statement from pg_prepared_statements")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(kept, func(s string) bool { return strings.Contains(s, "from conversions") }) {
			t.Error("a plan of the list is kept, which knows nothing of the filters that are given")
		}
	}
}
