package openapi_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	jsonexp "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

// FuzzDecode feeds anything to two bodies. Whatever they accept, the standard library
// must read as the same values, digit for digit, and so must they themselves once it is
// written again; whatever they refuse must be the sender's fault.
func FuzzDecode(f *testing.F) {
	shop := loadShop(f)
	record, put := shop.Body("POST", "/api/v1/sales"), shop.Body("PUT", "/api/v1/things/{id}")
	for _, seed := range []string{
		string(usualSale), string(sale(`"notes":null`)), string(sale(`"amount_brl":1E1000000000`)),
		string(sale(`"amount_brl":1,"\u0061mount_brl":1`)), `{"days":1e1,"owner":null,"name":null}`, `{"tags":["a","b"],"on":true}`,
		`{"a/b~c":"\u0000"}`, `{"either":"\ud83d\ude00"}`, `{"target":"x"}`, `[[[[`, "\xef\xbb\xbf{}", `{"step":-5e0}`, `{}{}`, ``,
		`{"\u006eame":"abc"}`, `{"name":null,"name":"abc"}`, `{"owner":{"id":"0197F0A2-1111-7ABC-8DEF-0123456789AB","name":"\u00e9\n"}}`,
		`{"target":1e-400}`, `{"codes":[1.0,10e-1]}`, `{"step":5000000000000000000000000000000000000000}`, `{"a/b~c":"\ud800"}`, `{"":1}`, `{"/~":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var in, again newSale
		if err := record.Decode(raw, &in); err != nil {
			refusal(t, err)
		} else {
			sameSale(t, raw, in)
			if rewritten := rewrite(t, in); record.Decode(rewritten, &again) != nil || !reflect.DeepEqual(in, again) {
				t.Errorf("%s became %+v, but, written as %s, %+v", raw, in, rewritten, again)
			}
		}
		var got, anew map[string]jsontext.Value
		if err := put.Decode(raw, &got); err != nil {
			refusal(t, err)
			return
		}
		want := withoutNulls(standard(t, raw))
		if said := withoutNulls(standard(t, rewrite(t, got))); !reflect.DeepEqual(said, want) {
			t.Errorf("%s: got %v; want %v", raw, said, want)
		}
		if err := put.Decode(rewrite(t, got), &anew); err != nil || !reflect.DeepEqual(standard(t, rewrite(t, anew)), standard(t, rewrite(t, got))) {
			t.Errorf("%s: got %s, and from that %s: %v", raw, got, anew, err)
		}
	})
}

// rewrite writes what was decoded as a body again.
func rewrite(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := jsonexp.Marshal(value)
	if err != nil {
		t.Fatalf("%v was decoded and cannot be written: %v", value, err)
	}
	return raw
}

// standard is what the standard library reads, with numbers as they are spelled.
func standard(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var want map[string]any
	if err := dec.Decode(&want); err != nil {
		t.Fatalf("%s was accepted, but encoding/json says: %v", raw, err)
	}
	return want
}

// withoutNulls removes the members that may count as absent.
func withoutNulls(members map[string]any) map[string]any {
	for name, value := range members {
		if value == nil {
			delete(members, name)
		}
	}
	return members
}

func sameSale(t *testing.T, raw []byte, got newSale) {
	t.Helper()
	want := standard(t, raw)
	number, _ := want["amount_brl"].(json.Number)
	amount, err := money.ParseBRL(number.String())
	if err != nil || amount != got.AmountBRL || amount < 1 {
		t.Errorf("amount %s became %d: %v", number, got.AmountBRL, err)
	}
	for name, text := range map[string]string{"referral_code": got.ReferralCode, "external_ref": got.ExternalRef} {
		if want[name] != text || text == "" {
			t.Errorf("%s %q became %q", name, want[name], text)
		}
	}
	if notes, isText := want["notes"].(string); isText != (got.Notes != nil) || isText && notes != *got.Notes {
		t.Errorf("notes %q became %v", want["notes"], got.Notes)
	}
}

func TestRefusalsAreEqualForEqualBodies(t *testing.T) {
	body := shopBody(t, "PUT", "/api/v1/things/{id}")
	raw := []byte(`{"z":1,"y":1,"x":1,"w":1,"name":1,"tags":[1,2],"days":"x","on":1}`)
	first := fault.Of(body.Decode(raw, new(thing))).Details
	for range 20 {
		if again := fault.Of(body.Decode(raw, new(thing))).Details; !reflect.DeepEqual(first, again) {
			t.Fatalf("got %v, then %v", first, again)
		}
	}
	if len(first) != 9 {
		t.Errorf("got %d issues; want all 9: %v", len(first), first)
	}
}
