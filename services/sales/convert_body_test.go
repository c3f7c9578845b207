package sales

import (
	"fmt"
	"strings"
	"testing"
)

func TestAReportOfAConversionThatIsNotValidIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	ids := []string{"1", `""`, `"x"`, quoted("{" + f.campaign + "}"), quoted(strings.ReplaceAll(f.campaign, "-", "")), quoted(f.campaign + " "), "[]"}
	texts := []string{"1", "{}", `"\u0000"`, `"\ud83d"`}
	f.recordsNothing(func() {
		for member, values := range map[string][]string{
			"referral_code": append([]string{"", "null", `""`, quoted(strings.Repeat("r", 65))}, texts...),
			"external_ref":  append([]string{"", "null", `""`, quoted(strings.Repeat("é", 256))}, texts...),
			"campaign_id":   append([]string{"", "null"}, ids...),
			"plan_id":       ids,
			"type":          {`""`, `"Lead"`, `"sale"`, `"lead "`, "1", "[]"},
			"customer_ref":  append([]string{quoted(strings.Repeat("c", 321))}, texts...),
			"notes":         append([]string{quoted(strings.Repeat("n", 4097))}, texts...),
			"value_brl": {
				`"10.00"`, "true", "0", "-1", "-0", "0.00", "0.001", "10.555", "1e400", "1E1000000000", "1e-400", "0e1000000000", "1000000000", "999999999.991",
				strings.Repeat("9", 40), "010", "+1", ".5", "1.", "NaN", "[]",
			},
			"occurred_at": {
				`"yesterday"`, `""`, `"2026-13-01T12:00:00Z"`, `"2026-02-30T12:00:00Z"`, `"2026-03-01T12:00:00"`, `"2026-03-01"`, `"1999-12-31T23:59:59Z"`,
				`"2026-03-01T12:00:60Z"`, "1767225600", "true",
			},
		} {
			for _, value := range values {
				t.Run(fmt.Sprintf("%s %.40s", member, value), func(t *testing.T) {
					f.in(t).post("/api/v1/conversions", f.conversion("refused", member, value)).refused(400, "invalid_body")
				})
			}
		}
		valid := f.conversion("refused")
		for _, body := range []string{"", "null", "[]", valid[:len(valid)-1], valid + "{}", valid[:len(valid)-1] + `,"\u0070lan_id":null}`, "\uFEFF" + valid} {
			f.post("/api/v1/conversions", body).refused(400, "invalid_body")
		}
		f.post("/api/v1/conversions", "{}").invalid("/campaign_id required", "/external_ref required", "/referral_code required")
		f.post("/api/v1/conversions", f.conversion("", "value_brl", "10.555", "campaign_id", `"x"`, "occurred_at", "7", "type", `"sale"`)).invalid(
			"/campaign_id format", "/external_ref too_short", "/occurred_at type", "/type not_allowed", "/value_brl too_many_decimals")
	})
}

func TestAReportOfAConversionIsTakenInEverySpellingThatIsAllowed(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for i, row := range []struct{ member, value, shown string }{
		{"occurred_at", `"2026-03-01T12:00:00.123456789-0300"`, "2026-03-01T15:00:00.123456Z"},
		{"occurred_at", `"2000-01-01T00:00:00Z"`, "2000-01-01T00:00:00Z"},
		{"campaign_id", quoted(strings.ToUpper(f.campaign)), f.campaign},
		{"plan_id", quoted(strings.ToUpper(f.plan)), f.plan},
		{"value_brl", "1e2", "100.00"},
		{"value_brl", "10.100", "10.10"},
		{"value_brl", "0.01", "0.01"},
		{"value_brl", "999999999.99", "999999999.99"},
		{"type", `"\u0063ustom"`, "custom"},
		{"customer_ref", quoted(strings.Repeat("é", 320)), strings.Repeat("é", 320)},
		{"notes", quoted(strings.Repeat("👍", 4096)), strings.Repeat("👍", 4096)},
	} {
		made := f.post("/api/v1/conversions", f.conversion(fmt.Sprint("spelt-", i), row.member, row.value)).want(201)
		f.get("/api/v1/conversions/"+made.text("conversion_id")).want(200).shows(row.member, row.shown)
	}
	seen := f.rows("conversions")
	refs := []string{strings.Repeat("👍", 255), "A", "a", " a", "é", "e\u0301", "'; drop table conversions; --", "%", "null"}
	for _, ref := range refs {
		made := f.post("/api/v1/conversions", f.conversion(ref)).want(201)
		f.get("/api/v1/conversions/"+made.text("conversion_id")).want(200).shows("external_ref", ref)
		f.post("/api/v1/conversions", f.conversion(ref)).want(200).shows("conversion_id", made.text("conversion_id"))
	}
	if n := f.rows("conversions") - seen; n != len(refs) {
		t.Errorf("%d conversions are recorded, want %d", n, len(refs))
	}
}
