package openapi_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
)

type thing struct {
	Name   string          `json:"name"`
	Days   int             `json:"days"`
	Pct    *money.Pct      `json:"pct"`
	Tags   []string        `json:"tags"`
	Owner  *owner          `json:"owner"`
	Target json.RawMessage `json:"target"`
	Either *string         `json:"either"`
	On     bool            `json:"on"`
}

type owner struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func TestEverySchemaRuleHasItsCodeAndMessage(t *testing.T) {
	body := shopBody(t, "PUT", "/api/v1/things/{id}")
	type issue struct{ path, code, message string }
	type issues []issue
	for raw, want := range map[string]issues{
		`{"name":1}`:       {{"/name", "type", "must be a string"}},
		`{"name":"a"}`:     {{"/name", "too_short", "at least 2 characters"}},
		`{"name":"abcde"}`: {{"/name", "too_long", "at most 4 characters"}},
		`{"name":"ABCDE"}`: {
			{"/name", "format", "must have the form ^[a-z]*$"},
			{"/name", "too_long", "at most 4 characters"}},
		`{"status":"gone"}`:   {{"/status", "not_allowed", "one of: active, suspended"}},
		`{"status":1}`:        {{"/status", "type", "must be a string"}},
		`{"kind":"x"}`:        {{"/kind", "not_allowed", "must be thing"}},
		`{"pct":-0.5}`:        {{"/pct", "too_small", "at least 0"}},
		`{"pct":"5"}`:         {{"/pct", "type", "must be a number"}},
		`{"pct":100.0001}`:    {{"/pct", "too_large", "at most 100"}},
		`{"pct":1.00001}`:     {{"/pct", "too_many_decimals", "at most 4 decimals"}},
		`{"pct":100.00001}`:   {{"/pct", "too_large", "at most 100"}, {"/pct", "too_many_decimals", "at most 4 decimals"}},
		`{"days":1.5}`:        {{"/days", "type", "must be an integer"}},
		`{"days":366}`:        {{"/days", "too_large", "at most 365"}},
		`{"days":1e400}`:      {{"/days", "too_large", "at most 365"}},
		`{"rate":0}`:          {{"/rate", "too_small", "more than 0"}},
		`{"rate":1}`:          {{"/rate", "too_large", "less than 1"}},
		`{"step":7}`:          {{"/step", "not_allowed", "must be a multiple of 5"}},
		`{"email":"x"}`:       {{"/email", "format", "must be an e-mail address"}},
		`{"url":"/relative"}`: {{"/url", "format", "must be an absolute URL"}},
		`{"email":"not an address"}`: {
			{"/email", "format", "must be an e-mail address"},
			{"/email", "too_long", "at most 12 characters"}},
		`{"on":"true"}`:                 {{"/on", "type", "must be true or false"}},
		`{"tags":[]}`:                   {{"/tags", "too_short", "at least 1 item"}},
		`{"tags":["a","b","abcd","a"]}`: {{"/tags", "too_long", "at most 3 items"}},
		`{"tags":["a","abcd","a"]}`: {
			{"/tags/1", "too_long", "at most 3 characters"},
			{"/tags/2", "not_allowed", "repeats item 0"}},
		`{"tags":"a"}`: {{"/tags", "type", "must be an array"}},
		`{"owner":1}`:  {{"/owner", "type", "must be an object or null"}},
		`{"owner":{}}`: {{"/owner/id", "required", "is required"}},
		`{"owner":{"id":"x","nick":1}}`: {
			{"/owner/id", "format", "must be a UUID: 8-4-4-4-12 hexadecimal digits"},
			{"/owner/nick", "unknown_member", "is not a known member"}},
		`{"owner":{"id":"0197f0a2_1111_7abc_8def_0123456789ab"}}`: {
			{"/owner/id", "format", "must be a UUID: 8-4-4-4-12 hexadecimal digits"}},
		`{"owner":{"id":1}}`:    {{"/owner/id", "type", "must be a string"}},
		`{"target":"abcd"}`:     {{"/target", "too_long", "at most 3 characters"}},
		`{"target":11}`:         {{"/target", "too_large", "at most 10"}},
		`{"target":true}`:       {{"/target", "type", "must be a string or a number"}},
		`{"either":1}`:          {{"/either", "type", "must be null or a string"}},
		`{"either":"abc"}`:      {{"/either", "too_long", "at most 2 characters"}},
		`{"twice":"abcd"}`:      {{"/twice", "format", "must have the form ^x"}, {"/twice", "too_long", "at most 3 characters"}},
		`{"twice":1}`:           {{"/twice", "type", "must be a string"}},
		`{"a/b~c":1}`:           {{"/a~1b~0c", "type", "must be a string"}},
		`{"x":1,"~y/":2}`:       {{"/x", "unknown_member", "is not a known member"}, {"/~0y~1", "unknown_member", "is not a known member"}},
		`{"Name":"ab"}`:         {{"/Name", "unknown_member", "is not a known member"}},
		`{"unknown":null}`:      {{"/unknown", "unknown_member", "is not a known member"}},
		`{"tags":[null]}`:       {{"/tags/0", "type", "must be a string"}},
		`{"owner":{"id":null}}`: {{"/owner/id", "type", "must be a string"}},
	} {
		err := body.Decode([]byte(raw), new(thing))
		refusal(t, err)
		var got issues
		for _, d := range fault.Of(err).Details {
			got = append(got, issue{d.Path, d.Code, d.Message})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v; want %v", raw, got, want)
		}
	}
}

func TestLengthsCountCharactersNotBytes(t *testing.T) {
	body := shopBody(t, "PATCH", "/api/v1/things/{id}")
	for raw, ok := range map[string]bool{
		`{"name":"éééééééééé"}`:                           true,
		`{"name":"ééééééééééé"}`:                          false,
		`{"name":"\ud83d\ude00"}`:                         true,
		`{"name":"😀😀😀😀😀😀😀😀😀😀"}`:                           true,
		`{"name":"e\u0301e\u0301e\u0301e\u0301e\u0301e"}`: false,
	} {
		var in struct {
			Name string `json:"name"`
		}
		if err := body.Decode([]byte(raw), &in); (err == nil) != ok {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

func TestANullOptionalMemberCountsAsAbsent(t *testing.T) {
	notes := "kept"
	in := newSale{Notes: &notes}
	err := shopBody(t, "POST", "/api/v1/sales").Decode(sale(`"notes":null,"sold_at":null,"customer_ref":"me","unknown":null`), &in)
	if err != nil {
		t.Fatal(err)
	}
	if in.Notes != &notes || in.SoldAt != nil || in.CustomerRef == nil || *in.CustomerRef != "me" {
		t.Errorf("got %+v", in)
	}

	got := refusal(t, shopBody(t, "PATCH", "/api/v1/things/{id}").Decode([]byte(`{"name":null}`), new(thing)))
	if !slices.Equal(got, []string{" too_short"}) {
		t.Errorf("nothing but nulls in a body that needs a member: got %q", got)
	}
}

func TestANullThatTheSchemaTakesArrives(t *testing.T) {
	in := struct {
		EndsAt *openapi.Time `json:"ends_at"`
	}{EndsAt: new(openapi.Time)}
	if err := shopBody(t, "PATCH", "/api/v1/things/{id}").Decode([]byte(`{"ends_at":null,"name":null}`), &in); err != nil {
		t.Fatal(err)
	}
	if in.EndsAt != nil {
		t.Error("the null did not arrive")
	}
}

func TestANullRequiredMemberHasTheWrongType(t *testing.T) {
	got := refusal(t, shopBody(t, "POST", "/api/v1/sales").Decode(sale(`"amount_brl":null,"notes":null`), new(newSale)))
	if !slices.Equal(got, []string{"/amount_brl type"}) {
		t.Errorf("got %q", got)
	}
}

func TestOneOfSeveralMembersIsRequired(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/payouts")
	type payout struct {
		ReferralCode string    `json:"referral_code"`
		AmountBRL    money.BRL `json:"amount_brl"`
	}
	for _, raw := range []string{`{"amount_brl":1}`, `{"amount_brl":1,"partner_id":null,"referral_code":null}`} {
		got := refusal(t, body.Decode([]byte(raw), new(payout)))
		if !slices.Equal(got, []string{"/partner_id required", "/referral_code required"}) {
			t.Errorf("%s: got %q", raw, got)
		}
	}
	var in payout
	if err := body.Decode([]byte(`{"amount_brl":1,"partner_id":null,"referral_code":"a"}`), &in); err != nil || in.ReferralCode != "a" {
		t.Errorf("got %+v, %v", in, err)
	}
}

func TestAWholeNumberIsAnIntegerHoweverItIsSpelled(t *testing.T) {
	body := shopBody(t, "PUT", "/api/v1/things/{id}")
	for token, want := range map[string]int{"10": 10, "1e1": 10, "10.0": 10, "3.5e1": 35, "0e0": 0} {
		var in thing
		raw := `{"name":"ab","days":` + token + `,"tags":["1e1"],"target":2.50}`
		if err := body.Decode([]byte(raw), &in); err != nil || in.Days != want || in.Tags[0] != "1e1" || string(in.Target) != "2.50" {
			t.Errorf("%s: got %+v, %v", token, in, err)
		}
	}
}

func TestAValueThatOnlyTheStructRefusesIsAnIssue(t *testing.T) {
	var in struct {
		Pct money.BRL `json:"pct"`
	}
	got := refusal(t, shopBody(t, "PUT", "/api/v1/things/{id}").Decode([]byte(`{"pct":1.555}`), &in))
	if !slices.Equal(got, []string{"/pct too_many_decimals"}) {
		t.Errorf("got %q", got)
	}
}

func TestAnOptionalBodyMayBeAbsent(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/payouts/{id}/cancel")
	var in struct {
		Reason *string `json:"reason"`
	}
	if err := body.Decode(nil, &in); err != nil {
		t.Error(err)
	}
	if got := refusal(t, body.Decode([]byte(" "), &in)); !slices.Equal(got, []string{" syntax"}) {
		t.Errorf("white space: got %q", got)
	}
}

func TestABodyServesManyCallersAtOnce(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				var in newSale
				if err := body.Decode(sale(`"notes":"n"`), &in); err != nil || *in.Notes != "n" {
					t.Errorf("got %+v, %v", in, err)
				}
				if err := body.Decode(sale(`"amount_brl":0`), &in); len(fault.Of(err).Details) != 1 {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	all.Wait()
}

func TestDecodeLeavesTheBodyAsItWas(t *testing.T) {
	raw := sale(`"notes":null,"customer_ref":"\u0041"`)
	before := slices.Clone(raw)
	if err := shopBody(t, "POST", "/api/v1/sales").Decode(raw, new(newSale)); err != nil || !slices.Equal(raw, before) {
		t.Errorf("%v; the body became %s", err, raw)
	}
}
