package sales

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestABodyThatIsNoStrictJSONObjectIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	valid := f.sale("refused")
	open, inside := valid[:len(valid)-1], valid[1:]
	var wide []byte
	for _, unit := range utf16.Encode([]rune("\uFEFF" + valid)) {
		wide = append(wide, byte(unit>>8), byte(unit))
	}
	f.recordsNothing(func() {
		for name, body := range map[string]string{
			"empty":                              "",
			"white space":                        " \n",
			"null":                               "null",
			"an array":                           "[]",
			"an array of the object":             "[" + valid + "]",
			"a string":                           `"x"`,
			"a number":                           "1",
			"truncated":                          open,
			"two objects":                        valid + "{}",
			"two empty objects":                  "{}{}",
			"something after the object":         valid + "x",
			"a trailing comma":                   open + ",}",
			"a comment":                          open + "/* paid */}",
			"NaN":                                f.sale("refused", "amount_brl", "NaN"),
			"single quotes":                      strings.ReplaceAll(valid, `"`, "'"),
			"a byte-order mark":                  "\uFEFF" + valid,
			"UTF-16":                             string(wide),
			"invalid UTF-8":                      f.sale("refused", "notes", "\"a\xffb\""),
			"UTF-8 that is too long":             f.sale("refused", "notes", "\"\xc0\xaf\""),
			"invalid UTF-8 in an unknown member": open + ",\"x\":\"\xed\xa0\x80\"}",
			"a member twice":                     open + `,"amount_brl":1}`,
			"a member twice, once escaped":       open + `,"\u0061mount_brl":1}`,
			"an unknown member twice":            open + `,"x":1,"x":1}`,
			"a member twice inside":              open + `,"x":{"y":1,"y":1}}`,
			"10,000 levels":                      open + `,"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}",
			"10,000 levels that never end":       strings.Repeat(`{"x":`, 10_000),
			"33 levels":                          open + `,"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + "}",
			"another letter case":                strings.Replace(valid, "amount_brl", "Amount_BRL", 1),
			"U+0000 in an unknown member":        `{"x":"a\u0000",` + inside,
		} {
			t.Run(name, func(t *testing.T) { f.in(t).post("/api/v1/sales", body).refused(400, "invalid_body") })
		}
	})
	f.post("/api/v1/sales", open+`,"x":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+"}").want(201)
}

func TestEveryIssueOfABodyIsToldAtOnce(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.recordsNothing(func() {
		f.post("/api/v1/sales", "{}").invalid(
			"/amount_brl required", "/campaign_id required", "/external_ref required", "/plan_id required", "/referral_code required")
		f.post("/api/v1/sales", f.sale("", "amount_brl", "10.555", "campaign_id", `"x"`, "sold_at", "7", "referral_code", "")).invalid(
			"/amount_brl too_many_decimals", "/campaign_id format", "/external_ref too_short", "/referral_code required", "/sold_at type")
	})
}

func TestAnAmountThatIsNoAmountIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.recordsNothing(func() {
		for _, amount := range []string{
			"", "null", `"10.00"`, "true", "0", "-1", "-0", "-0.00", "0.00", "0.001", "10.555", "1e400", "1E1000000000", "-1E1000000000", "1e-400",
			"1E-1000000000", "0e1000000000", "1000000000", "999999999.991", strings.Repeat("9", 40), "0." + strings.Repeat("1", 40),
			"010", "+1", ".5", "1.", "1e", "0x1", "1_0", "1,5", "Infinity", "[]", "{}",
		} {
			t.Run(amount, func(t *testing.T) {
				f.in(t).post("/api/v1/sales", f.sale("refused", "amount_brl", amount)).refused(400, "invalid_body")
			})
		}
	})
}

func TestAnAmountIsTakenExactlyHoweverItIsSpelt(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for spelling, row := range map[string]struct{ amount, commission string }{
		"1e2": {"100.00", "5.00"}, "10.100": {"10.10", "0.51"}, "0.01": {"0.01", "0.00"}, "999999999.99": {"999999999.99", "50000000.00"},
		"1E+2": {"100.00", "5.00"}, "5": {"5.00", "0.25"}, "12345e-2": {"123.45", "6.17"}, "0.1" + strings.Repeat("0", 60): {"0.10", "0.01"},
	} {
		t.Run(spelling, func(t *testing.T) {
			f := f.in(t)
			answer := f.post("/api/v1/sales", f.sale("spelt "+spelling, "amount_brl", spelling)).want(201).shows("commission_amount_brl", row.commission)
			f.get("/api/v1/sales/"+answer.text("sale_id")).want(200).shows("amount_brl", row.amount)
		})
	}
}

func TestAReferenceThatCannotNameASaleIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.recordsNothing(func() {
		for name, ref := range map[string]string{
			"missing": "", "empty": `""`, "null": "null", "a number": "17", "true": "true", "an array": `["a"]`,
			"256 characters": quoted(strings.Repeat("é", 256)), "U+0000": `"a\u0000b"`, "half a pair": `"\ud800"`, "the other half": `"\udc00"`, "a pair turned round": `"\udc00\ud800"`,
		} {
			t.Run(name, func(t *testing.T) {
				f.in(t).post("/api/v1/sales", f.sale("", "external_ref", ref)).refused(400, "invalid_body")
			})
		}
	})
}

func TestAReferenceIsComparedByteForByte(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	refs := []string{
		strings.Repeat("é", 255), strings.Repeat("👍", 255), "👍🏽", "A", "a", " a", "a ", "é", "e\u0301", "'; drop table sales; --", `\`, `"`, "%", "_", "\u200b", "null", "ß", "SS",
	}
	for _, ref := range refs {
		sale := f.post("/api/v1/sales", f.sale(ref)).want(201)
		f.get("/api/v1/sales/"+sale.text("sale_id")).want(200).shows("external_ref", ref)
		f.post("/api/v1/sales", f.sale(ref)).want(200).shows("sale_id", sale.text("sale_id"))
	}
	f.post("/api/v1/sales", f.sale("", "external_ref", `"\u0041"`)).want(200) // A, spelt otherwise
	other := f.stranger()
	for _, ref := range refs {
		other.post("/api/v1/sales", other.sale(ref)).want(201)
	}
	if n := f.rows("sales"); n != 2*len(refs) {
		t.Errorf("%d sales are recorded, want %d", n, 2*len(refs))
	}
}

func TestIdsDatesAndTextsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	rows := map[string][]string{
		"customer_ref":  {"1", quoted(strings.Repeat("c", 321)), `"\u0000"`},
		"notes":         {"{}", quoted(strings.Repeat("n", 4097)), `"\ud83d"`},
		"referral_code": {"", "null", `""`, quoted(strings.Repeat("r", 65)), "7"},
		"sold_at": {
			`"yesterday"`, `""`, `"2026-13-01T12:00:00Z"`, `"2026-02-30T12:00:00Z"`, `"2026-02-29T12:00:00Z"`, `"2026-03-01T12:00:00"`, "1767225600",
			`"2026-03-01"`, `"1999-12-31T23:59:59Z"`, `"2026-03-01 12:00:00Z"`, `"2026-03-01T12:00Z"`, `"2026-03-01T24:00:00Z"`, `"2026-03-01T12:00:60Z"`,
			`"2026-03-01T12:00:00+24:00"`, `"2026-03-01T12:00:00z"`, `"10000-01-01T00:00:00Z"`, `"0000-00-00T00:00:00Z"`, `"2026-03-01T12:00:00.Z"`, "true",
		},
	}
	for _, member := range []string{"campaign_id", "plan_id"} {
		rows[member] = []string{
			"", "null", "1", `""`, `"x"`, quoted("{" + f.campaign + "}"), quoted("urn:uuid:" + f.campaign), quoted(strings.ReplaceAll(f.campaign, "-", "")),
			quoted(f.campaign + " "), quoted(f.campaign[:35]), quoted(f.campaign[:35] + "g"), quoted(strings.Replace(f.campaign, "-", "0", 1)),
		}
	}
	f.recordsNothing(func() {
		for member, values := range rows {
			for _, value := range values {
				t.Run(fmt.Sprintf("%s %.40s", member, value), func(t *testing.T) {
					f.in(t).post("/api/v1/sales", f.sale("refused", member, value)).refused(400, "invalid_body")
				})
			}
		}
	})
}

func TestIdsDatesAndTextsAreTakenInEverySpellingThatIsAllowed(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for i, row := range []struct{ member, value, shown string }{
		{"sold_at", `"2026-03-01T12:00:00.25-03:00"`, "2026-03-01T15:00:00.25Z"},
		{"sold_at", `"2026-03-01T12:00:00.123456789Z"`, "2026-03-01T12:00:00.123456Z"},
		{"sold_at", `"2026-03-01T12:00:00-0300"`, "2026-03-01T15:00:00Z"},
		{"sold_at", `"2026-03-01T12:00:00-03"`, "2026-03-01T15:00:00Z"},
		{"sold_at", `"2000-01-01T00:00:00Z"`, "2000-01-01T00:00:00Z"},
		{"campaign_id", quoted(strings.ToUpper(f.campaign)), f.campaign},
		{"plan_id", quoted(strings.ToUpper(f.plan)), f.plan},
		{"customer_ref", quoted(strings.Repeat("é", 320)), strings.Repeat("é", 320)},
		{"customer_ref", "null", "<nil>"},
		{"notes", quoted(strings.Repeat("👍", 4096)), strings.Repeat("👍", 4096)},
		{"notes", "null", "<nil>"},
	} {
		answer := f.post("/api/v1/sales", f.sale(fmt.Sprint("spelt-", i), row.member, row.value)).want(201)
		f.get("/api/v1/sales/"+answer.text("sale_id")).want(200).shows(row.member, row.shown)
	}
	answer := f.post("/api/v1/sales", f.sale("no date", "sold_at", "null", "unknown", `{"a":[null]}`)).want(201)
	sale := f.get("/api/v1/sales/" + answer.text("sale_id")).want(200)
	if sale.text("sold_at") != sale.text("created_at") {
		t.Errorf("without a sold_at a sale is sold when it is recorded, but not %s", sale.raw)
	}
	if members := sale.object(); slices.Contains([]any{nil, ""}, members["created_at"]) || members["unknown"] != nil {
		t.Errorf("shown as %s", sale.raw)
	}
}
