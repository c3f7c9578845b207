package sales

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestARefundThatIsNotWellFormedIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	_, refunds := f.sell("order-1")
	valid := refundOf("refused", "1")
	open := valid[:len(valid)-1]
	bodies := map[string]string{
		"empty": "", "null": "null", "an array": "[" + valid + "]", "a string": `"x"`, "truncated": open, "two objects": valid + "{}",
		"a trailing comma": open + ",}", "a comment": open + "/**/}", "a byte-order mark": "\uFEFF" + valid,
		"a member twice": open + `,"amount_brl":1}`, "a member twice, once escaped": open + `,"\u0061mount_brl":1}`,
		"invalid UTF-8": open + ",\"reason\":\"\xff\"}", "another letter case": strings.Replace(valid, "amount_brl", "Amount_BRL", 1),
		"10,000 levels": open + `,"reason":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}",
	}
	rows := map[string][]string{
		"amount_brl": {
			"", "null", `"1.00"`, "true", "0", "-1", "-0", "0.001", "10.555", "1e400", "1E1000000000", "1e-400", "1000000000", strings.Repeat("9", 40),
			"010", "+1", ".5", "1.", "NaN", "[]", "{}",
		},
		"external_ref": {"", "null", "17", `""`, quoted(strings.Repeat("é", 256)), `"a\u0000b"`, `"\ud800"`, `"\udc00\ud800"`, `["a"]`},
		"reason":       {"1", "true", `""`, "{}", quoted(strings.Repeat("é", 501)), `"\u0000"`, `"\ud83d"`},
		"sale_id":      {quoted(f.plan), "null"}, // the path names it
		"notes":        {`"x"`},
	}
	for member, values := range rows {
		for _, value := range values {
			bodies[fmt.Sprintf("%s %.40s", member, value)] = refundOf("refused", "1", member, value)
		}
	}
	f.recordsNothing(func() {
		for name, body := range bodies {
			t.Run(name, func(t *testing.T) { f.in(t).post(refunds, body).refused(400, "invalid_body") })
		}
		f.post(refunds, "{}").invalid("/amount_brl required", "/external_ref required")
		f.post(refunds, refundOf("", "1.001", "reason", "1", "reasons", "1")).invalid(
			"/amount_brl too_many_decimals", "/external_ref too_short", "/reason type", "/reasons unknown_member")
		for _, id := range []string{"x", "1", "{" + f.plan + "}", f.plan[:35], strings.ReplaceAll(f.plan, "-", ""), "%00"} {
			f.post("/api/v1/sales/"+id+"/refunds", valid).refused(400, "invalid_parameter")
			f.get("/api/v1/sales/"+id+"/refunds").refused(400, "invalid_parameter")
		}
	})
	f.post(refunds, refundOf("refused", "1")).want(201)
}

func TestWhatARefundSaysIsTakenExactly(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	_, refunds := f.sell("order-1", "amount_brl", "999999999.99")
	refs := []string{
		strings.Repeat("é", 255), strings.Repeat("👍", 255), "A", "a", " a", "é", "e\u0301", "'; drop table refunds; --", `\`, `"`, "%", "\u200b", "null",
	}
	for _, ref := range refs {
		made := f.post(refunds, refundOf(ref, "1")).want(201)
		f.post(refunds, refundOf(ref, "1")).want(200).shows("refund_id", made.text("refund_id")).mismatches("")
	}
	var shown []string
	for _, row := range f.get(refunds + "?limit=100").want(200).object()["data"].([]any) {
		shown = append(shown, row.(map[string]any)["external_ref"].(string))
	}
	if slices.Reverse(shown); !slices.Equal(shown, refs) {
		t.Errorf("shown are %q", shown)
	}
	for spelling, amount := range map[string]string{"1e2": "100.00", "10.100": "10.10", "0.01": "0.01", "12345e-2": "123.45", "0.1" + strings.Repeat("0", 60): "0.10"} {
		f.post(refunds, refundOf("spelt "+spelling, spelling)).want(201).shows("amount_brl", amount)
	}
	reason := strings.Repeat("👍", 500)
	f.post(refunds, refundOf("reasoned", "1", "reason", quoted(reason))).want(201)
	if row := f.get(refunds + "?limit=1").want(200).object()["data"].([]any)[0].(map[string]any); row["reason"] != reason {
		t.Errorf("shown as %v", row)
	}
}
