package sales

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"partilha.dev/services/sales/internal/rowfile"
)

// badObjects are rows of NDJSON that are refused, with their reasons.
var badObjects = []struct{ row, reason string }{
	{`{"type":"campaign","name":"x"}`, "invalid_body /external_ref required"},
	{`{"type":"campaign","name":"x","external_ref":null}`, "invalid_body /external_ref required"},
	{`{"type":"campaign","name":"","status":"open","external_ref":"x","starts_at":"2026-01-01"}`, "invalid_body /name too_short /starts_at format /status not_allowed"},
	{`{"type":"campaign","name":"x","external_ref":"x","starts_at":"2026-02-01T00:00:00Z","ends_at":"2026-01-01T00:00:00Z"}`, "invalid_body /ends_at too_small"},
	{`{"type":"partner","name":"x"}`, "invalid_body /referral_code required"},
	{`{"type":"partner","name":"x","referral_code":"a b","email":"x"}`, "invalid_body /email format /referral_code format"},
	{`{"type":"partner","name":"x","referral_code":"x","Email":"a@example.com"}`, "invalid_body /Email unknown_member"},
	{`{"type":"partner","name":"x","referral_code":"x","name":"y"}`, "invalid_body /name duplicate_member"},
	{`{"type":"partner","type":"sale","name":"x","referral_code":"x"}`, "invalid_body /type duplicate_member"},
	{`{"type":"partner","name":"x\u0000","referral_code":"x"}`, "invalid_body /name format"},
	{`{"type":"partner","name":"x","referral_code":"x","a/b~":1}`, "invalid_body /a~1b~0 unknown_member"},
	{`{"type":"plan","campaign_ref":"summer","name":"x","commission_pct":100.1,"hold_days":1.5,"external_ref":"x"}`, "invalid_body /commission_pct too_large /hold_days type"},
	{`{"type":"plan","campaign_ref":"winter","name":"x","commission_pct":1,"external_ref":"x"}`, "not_found /campaign_ref not_allowed"},
	{`{"type":"plan","name":"x","commission_pct":1,"external_ref":"x"}`, "invalid_body /campaign_ref required"},
	{`{"type":"plan","campaign_ref":"summer","campaign_id":"x","name":"x","commission_pct":1,"external_ref":"x"}`, "invalid_body /campaign_id not_allowed"},
	{`{"type":"plan","campaign_id":"x","name":"x","commission_pct":1,"external_ref":"x"}`, "invalid_body /campaign_id format"},
	{`{"type":"link","campaign_ref":"summer"}`, "invalid_body /referral_code required"},
	{`{"type":"link","campaign_ref":7,"referral_code":""}`, "invalid_body /campaign_ref type /referral_code too_short"},
	{`{"type":"link","campaign_ref":"a\u0000","referral_code":"ana.souza","notes":"x"}`, "invalid_body /campaign_ref format /notes unknown_member"},
	{`{"type":"link","campaign_ref":"summer","referral_code":"nobody"}`, "not_found /referral_code not_allowed"},
	{`{"type":"sale","referral_code":"ana.souza","campaign_ref":"summer","plan_ref":"summer-gold","amount_brl":10.555,"external_ref":"x"}`, "invalid_body /amount_brl too_many_decimals"},
	{`{"type":"sale","referral_code":"ana.souza","campaign_ref":"summer","plan_ref":"summer-gold","amount_brl":"10","external_ref":"x"}`, "invalid_body /amount_brl type"},
	{`{"type":"sale","referral_code":"ana.souza","campaign_ref":"summer","plan_ref":"summer-gold","amount_brl":1E1000000000,"external_ref":"x"}`, "invalid_body /amount_brl too_large"},
	{`{"type":"sale"}`, "invalid_body /amount_brl required /campaign_ref required /external_ref required /plan_ref required /referral_code required"},
	{`{"type":"sale","referral_code":"ana.souza","campaign_ref":"summer","plan_ref":"summer-gold","amount_brl":1,"external_ref":"x","custmer_ref":"x"}`, "invalid_body /custmer_ref unknown_member"},
	{`{"type":"sale","referral_code":"nobody","campaign_ref":"summer","plan_ref":"summer-gold","amount_brl":1,"external_ref":"x"}`, "partner_not_found"},
	{`{"type":"sale","referral_code":"caio.reis","campaign_ref":"summer","plan_ref":"summer-gold","amount_brl":1,"external_ref":"x"}`, "partner_not_found"},
	{`{"type":"sale","referral_code":"ana.souza","campaign_ref":"summer","plan_ref":"summer-gold","amount_brl":1,"external_ref":"x","sold_at":"2025-11-30T00:00:00Z"}`, "create_failed"},
	{`{"type":"refund"}`, "invalid_body /type not_allowed"},
	{`{"type":3}`, "invalid_body /type not_allowed"},
	{`{"name":"x"}`, "invalid_body /type required"},
	{`{}`, "invalid_body /type required"},
	{`[]`, "invalid_body  type"},
	{`null`, "invalid_body  type"},
	{`{"type":"sale"`, "invalid_body  syntax"},
	{`{"type":"sale"} {}`, "invalid_body  syntax"},
	{`{"type":"\ud800"}`, "invalid_body  syntax"},
	{"{\"type\":\"\xff\"}", "invalid_body  syntax"},
	{`{"type":"partner","name":` + strings.Repeat("[", 20_000) + `}`, "invalid_body  syntax"},
	{`{"type":"partner","name":"x","referral_code":"x","email":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, "invalid_body  syntax"},
	{`{"type":"partner","name":"` + strings.Repeat("x", rowfile.MaxRow) + `"}`, "invalid_body  syntax"},
	{strings.Repeat(" ", rowfile.MaxRow+1) + `{}`, "invalid_body  syntax"},
}

func TestEachRowThatIsWrongIsRefusedByItsLineAndTheOthersAreTaken(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.newTenant()
	f.imports("example/history.csv").says("all 11 0 0")
	var file strings.Builder
	reasons := map[int]string{}
	lines := 0
	for _, bad := range badObjects {
		reasons[lines+1] = bad.reason
		file.WriteString(bad.row + "\r\n" + `{"type":"link","campaign_ref":"summer","referral_code":"ana.souza"}` + "\n\n")
		lines += 3
	}
	f.recordsNothing(func() {
		got := f.imports(f.file("bad.ndjson", file.String())).says(fmt.Sprintf("link 0 %d 4", len(badObjects)), "none 0 0 13")
		for _, row := range got.rows {
			reason, wanted := reasons[row.Line]
			if why := (&imported{rows: []refusedRow{row}}).reasons()[0]; !wanted || !strings.HasSuffix(why, " "+reason) || row.Message == "" {
				t.Errorf("line %d is refused as %q, want %q: %.200s", row.Line, why, reason, row.Row)
			}
			delete(reasons, row.Line)
		}
		for line, reason := range reasons {
			t.Errorf("line %d is not refused as %q", line, reason)
		}
	})
}

func TestRowsOfCSVAreRefusedByTheLinesOnWhichTheyBegin(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.newTenant()
	const header = "type,name,referral_code,commission_pct,campaign_ref,external_ref\n"
	for what, row := range map[string]struct {
		rows    string
		reasons []string
		partner string
	}{
		"a column too many":           {"partner,A,a1,,,a1,\npartner,B,b1,,,b1\n", []string{"2 invalid_body  syntax"}, "1 0 0"},
		"a column too few":            {"partner,A,a2,,\npartner,B,b2,,,b2\n", []string{"2 invalid_body  syntax"}, "1 0 0"},
		"a stray quotation mark":      {"partner,5\" tape,a3,,,a3\npartner,B,b3,,,b3\npartner,\"C\"\"\",c3,,,c3\n", []string{"2 invalid_body  syntax"}, "2 0 0"},
		"a mark that is never closed": {"partner,\"A,a4,,,a4\npartner,B,b4,,,b4\npartner,C,c4,,,c4", []string{"2 invalid_body  syntax"}, "2 0 0"},
		"a row of two lines":          {"partner,\"A\nB\",a5,,,a5\npartner,x,,,,x\n", []string{"4 invalid_body /referral_code required"}, "1 0 1"},
		"broken UTF-8":                {"partner,\xff,a6,,,a6\npartner,B,b6,,,b6\n", []string{"2 invalid_body  syntax"}, "1 0 0"},
		"a byte-order mark inside":    {"\xef\xbb\xbfpartner,A,a7,,,a7\npartner,B,b7,,,b7\n", []string{"2 invalid_body  syntax"}, "1 0 0"},
		"U+0000":                      {"partner,a\x00b,a8,,,a8\npartner,B,b8,,,b8\n", []string{"2 invalid_body /name format"}, "1 0 1"},
		"a row without end":           {"partner," + strings.Repeat("x", 3*rowfile.MaxRow) + ",a9,,,a9\npartner,B,b9,,,b9\n", []string{"2 invalid_body  syntax"}, "1 0 0"},
		"a cell of another type":      {"partner,A,a10,5,,a10\n", []string{"2 invalid_body /commission_pct unknown_member"}, "0 0 1"},
		"a comma for the point":       {"campaign,x,,,,c11\nplan,A,,\"12,5\",c11,p11\n", []string{"3 invalid_body /commission_pct type"}, "0 0 0"},
		"no type":                     {",A,a12,,,a12\n", []string{"2 invalid_body /type required"}, "0 0 0"},
	} {
		t.Run(what, func(t *testing.T) {
			got := f.in(t).imports(f.in(t).file("rows.csv", header+row.rows)).says("partner " + row.partner)
			if !slices.Equal(got.reasons(), row.reasons) {
				t.Errorf("refused %q, want %q: %+v", got.reasons(), row.reasons, got.rows)
			}
		})
	}
}

func TestAFileOfWhichNoRowCanBeReadIsNotImported(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for name, row := range map[string]struct{ file, content, reason string }{
		"an unknown column":            {"a.csv", "type,amount\n", `"amount" is not the name of a column`},
		"a column that is there twice": {"b.csv", "type,name,name\n", "two columns name"},
		"no header":                    {"c.csv", "", "the header cannot be read"},
		"UTF-16":                       {"e.csv", "\xff\xfet\x00y\x00p\x00e\x00", "the header cannot be read"},
		"NDJSON that is called CSV":    {"f.csv", `{"type":"sale"}`, "header"},
		"something else":               {"g", "%PDF-1.7\n", "not the name of a column"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.recordsNothing(func() {
				if got := f.imports(f.file(row.file, row.content)); got.err == nil || !strings.Contains(got.err.Error(), row.reason) {
					t.Errorf("%v, want %q", got.err, row.reason)
				}
			})
		})
	}
	f.imports(f.file("empty", "")).says("all 0 0 0")
}
