package openapi

import (
	"os"
	"testing"
)

func shopBodies(t testing.TB) map[string]*Body {
	t.Helper()
	source, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Load(source)
	if err != nil {
		t.Fatal(err)
	}
	return d.bodies
}

var saleText = `{"referral_code":"ana","campaign_id":"0197f0a2-1111-7abc-8def-0123456789ab",` +
	`"plan_id":"0197f0a2-2222-7abc-8def-0123456789ab","amount_brl":199.90,"external_ref":"order-1","sold_at":"2026-03-01T12:00:00-03"}`

func TestAnOrdinarySaleNeedsNoValidator(t *testing.T) {
	read, fault := parse([]byte(saleText))
	if fault != nil {
		t.Fatal(fault)
	}
	if !shopBodies(t)["POST /api/v1/sales"].quick.accepts(read.tree) {
		t.Error("the validator was asked")
	}
}

func FuzzTheAcceptorTakesNothingThatTheValidatorRefuses(f *testing.F) {
	bodies := shopBodies(f)
	for _, seed := range []string{
		saleText, `{"name":"abc"}`, `{"name":"abcd","status":"active","days":3,"pct":1.5,"rate":0.5,"step":10,"on":true}`,
		`{"tags":["a"],"either":null,"email":"a@b.co","url":"https://a.b/","target":3}`, `{"days":-0}`, `{"days":1.0}`, `{"rate":1}`,
		`{"pct":100.0001}`, `{"pct":99999999999999.9999}`, `{"step":0.0005}`, `{"kind":"thing"}`, `{"twice":"x"}`, `{"reason":"é"}`, `[]`, `null`,
		`{"name":"AB"}`, `{"tags":["a","b","c","d"]}`, `{"tags":["a","a"]}`, `{"codes":[1,2]}`, `{"codes":[1,2,3]}`, `{"codes":[1.5]}`,
		`{"status":"gone"}`, `{"name":"é"}`, `{"other":1}`, `{"owner":{}}`, `{"on":null}`, `{"days":366}`, `{"pct":1.00001}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		read, fault := parse(raw)
		if fault != nil {
			return
		}
		for name, body := range bodies {
			if err := body.schema.Validate(read.tree); err != nil && body.quick.accepts(read.tree) {
				t.Errorf("%s: %s was taken in spite of: %v", name, raw, err)
			}
		}
	})
}

func TestTenThousandthsAreExact(t *testing.T) {
	for token, want := range map[string]int64{
		"0": 0, "-0": 0, "1": 10_000, "-1.5": -15_000, "0.0001": 1, "10.10": 101_000, "9999999999999.9999": 99_999_999_999_999_999,
	} {
		if got, ok := tenThousandths(token); !ok || got != want {
			t.Errorf("%s: got %d, %t; want %d", token, got, ok, want)
		}
	}
	for _, token := range []string{"", "-", ".", "1e2", "1E2", "0.00001", "999999999999999", "99999999999999999999", "1.2.3", "+1", ".5", "--1"} {
		if got, ok := tenThousandths(token); ok {
			t.Errorf("%q: got %d", token, got)
		}
	}
}
