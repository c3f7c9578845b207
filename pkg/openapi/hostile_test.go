package openapi_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

func TestABodyThatIsNotStrictJSONIsRefused(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	whole := string(sale(""))
	var wide []byte
	for _, unit := range utf16.Encode([]rune(whole)) {
		wide = append(wide, byte(unit), byte(unit>>8))
	}
	for name, c := range map[string]struct {
		raw  string
		want string
	}{
		"empty":                         {"", " syntax"},
		"white space":                   {" \n", " syntax"},
		"null":                          {"null", " type"},
		"an array":                      {"[]", " type"},
		"a string":                      {`"x"`, " type"},
		"a number":                      {"1", " type"},
		"truncated":                     {whole[:len(whole)-1], " syntax"},
		"truncated in a string":         {whole[:len(whole)-3], " syntax"},
		"two objects":                   {whole + whole, " syntax"},
		"trailing bracket":              {whole + "}", " syntax"},
		"trailing comma":                {whole[:len(whole)-1] + ",}", " syntax"},
		"block comment":                 {"/* hi */" + whole, " syntax"},
		"line comment":                  {whole + "// hi", " syntax"},
		"NaN":                           {strings.Replace(whole, "10.00", "NaN", 1), " syntax"},
		"Infinity":                      {strings.Replace(whole, "10.00", "-Infinity", 1), " syntax"},
		"byte-order mark":               {"\xef\xbb\xbf" + whole, " syntax"},
		"UTF-16":                        {string(wide), " syntax"},
		"UTF-16 with a mark":            {"\xff\xfe" + string(wide), " syntax"},
		"invalid UTF-8":                 {strings.Replace(whole, "order", "\xff", 1), " syntax"},
		"overlong UTF-8":                {strings.Replace(whole, "order", "\xc0\xaf", 1), " syntax"},
		"a surrogate in UTF-8":          {strings.Replace(whole, "order", "\xed\xa0\x80", 1), " syntax"},
		"unpaired high surrogate":       {strings.Replace(whole, "order", `\ud800`, 1), " syntax"},
		"unpaired low surrogate":        {strings.Replace(whole, "order", `\udc00`, 1), " syntax"},
		"surrogates in the wrong order": {strings.Replace(whole, "order", `\udc00\ud800`, 1), " syntax"},
		"a bare control character":      {strings.Replace(whole, "order", "\n", 1), " syntax"},
		"a bare NUL":                    {strings.Replace(whole, "order", "\x00", 1), " syntax"},
		"an escaped NUL":                {strings.Replace(whole, "order", `\u0000`, 1), "/external_ref format"},
		"an escaped NUL in a name":      {`{"a\u0000":1}`, "/a\x00 format"},
		"an unknown escape":             {strings.Replace(whole, "order", `\x`, 1), " syntax"},
		"single quotes":                 {`{'a':1}`, " syntax"},
		"a bare name":                   {`{a:1}`, " syntax"},
		"a name that is a number":       {`{1:1}`, " syntax"},
		"10000 arrays":                  {strings.Repeat("[", 10_000), " syntax"},
		"10000 objects":                 {strings.Repeat(`{"a":`, 10_000), " syntax"},
		"10000 objects as names":        {strings.Repeat(`{`, 10_000), " syntax"},
		"10000 arrays in an object":     {`{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}", " syntax"},
		"33 levels":                     {`{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + "}", " syntax"},
	} {
		got := refusal(t, body.Decode([]byte(c.raw), new(newSale)))
		if !slices.Contains(got, c.want) {
			t.Errorf("%s: got %q; want %q", name, got, c.want)
		}
		if strings.HasSuffix(c.want, " syntax") && len(got) != 1 {
			t.Errorf("%s: got %q; want nothing but the syntax", name, got)
		}
	}
}

func TestThirtyTwoLevelsAreAccepted(t *testing.T) {
	deep := sale(`"extra":` + strings.Repeat("[", 31) + strings.Repeat("]", 31))
	if err := shopBody(t, "POST", "/api/v1/sales").Decode(deep, new(newSale)); err != nil {
		t.Error(err)
	}
}

func TestEveryDuplicateMemberIsNamed(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	for raw, want := range map[string][]string{
		`"amount_brl":1,"amount_brl":2`:                        {"/amount_brl duplicate_member"},
		`"amount_brl":1,"\u0061mount_brl":1`:                   {"/amount_brl duplicate_member"},
		`"amount_brl":1,"amount_brl":2,"amount_brl":3`:         {"/amount_brl duplicate_member"},
		`"x":[{"a":1,"a":2}],"external_ref":"","x":1`:          {"/external_ref too_short", "/x duplicate_member", "/x/0/a duplicate_member"},
		`"a/b~":1,"a/b~":2`:                                    {"/a~1b~0 duplicate_member"},
		`"amount_brl":null,"amount_brl":1`:                     {"/amount_brl duplicate_member"},
		`"external_ref":"a","external_ref":"b","amount_brl":0`: {"/amount_brl too_small", "/external_ref duplicate_member"},
	} {
		if got := refusal(t, body.Decode(sale(raw), new(newSale))); !slices.Equal(got, want) {
			t.Errorf("%s: got %q; want %q", raw, got, want)
		}
	}
}

func TestMemberNamesAreComparedExactly(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	got := refusal(t, body.Decode([]byte(strings.Replace(string(sale("")), "amount_brl", "Amount_BRL", 1)), new(newSale)))
	if !slices.Equal(got, []string{"/amount_brl required"}) {
		t.Errorf("another letter case alone: got %q", got)
	}
	var in newSale
	if err := body.Decode(sale(`"amount_brl":1,"Amount_BRL":2,"AMOUNT_BRL":3,"NOTES":"x"`), &in); err != nil {
		t.Fatal(err)
	}
	if in.AmountBRL != 100 || in.Notes != nil {
		t.Errorf("members in another letter case were decoded: %+v", in)
	}
}

func TestAmountsThatAreRefused(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	for token, want := range map[string][]string{
		"null":                       {"/amount_brl type"},
		`"10.00"`:                    {"/amount_brl type"},
		"true":                       {"/amount_brl type"},
		"[]":                         {"/amount_brl type"},
		"{}":                         {"/amount_brl type"},
		"0":                          {"/amount_brl too_small"},
		"0.00":                       {"/amount_brl too_small"},
		"0e9":                        {"/amount_brl too_small"},
		"-1":                         {"/amount_brl too_small"},
		"-0":                         {"/amount_brl too_small"},
		"-0.0":                       {"/amount_brl too_small"},
		"0.001":                      {"/amount_brl too_many_decimals", "/amount_brl too_small"},
		"10.555":                     {"/amount_brl too_many_decimals"},
		"10.00000000000000000000001": {"/amount_brl too_many_decimals"},
		"1e400":                      {"/amount_brl too_large"},
		"1E1000000000":               {"/amount_brl too_large"},
		"-1E1000000000":              {"/amount_brl too_small"},
		"1E99999999999999999999":     {"/amount_brl too_large"},
		"1e-400":                     {"/amount_brl too_many_decimals", "/amount_brl too_small"},
		"1E-1000000000":              {"/amount_brl too_many_decimals", "/amount_brl too_small"},
		"1000000000":                 {"/amount_brl too_large"},
		"999999999.991":              {"/amount_brl too_large", "/amount_brl too_many_decimals"},
		strings.Repeat("9", 40):      {"/amount_brl too_large"},
		strings.Repeat("9", 60_000):  {"/amount_brl too_large"},
		"010":                        {" syntax"},
		"+1":                         {" syntax"},
		".5":                         {" syntax"},
		"1.":                         {" syntax"},
		"1e":                         {" syntax"},
		"0x10":                       {" syntax"},
		"1_000":                      {" syntax"},
		"10,00":                      {" syntax"},
	} {
		got := refusal(t, body.Decode(sale(`"amount_brl":`+token), new(newSale)))
		if !slices.Equal(got, want) {
			t.Errorf("%.40s: got %q; want %q", token, got, want)
		}
	}
	got := refusal(t, body.Decode([]byte(`{"external_ref":"a"}`), new(newSale)))
	want := []string{"/amount_brl required", "/campaign_id required", "/plan_id required", "/referral_code required"}
	if !slices.Equal(got, want) {
		t.Errorf("missing members: got %q; want %q", got, want)
	}
}

func TestAmountsThatAreAcceptedKeepTheirExactValue(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	for token, want := range map[string]money.BRL{
		"1e2": 10000, "10.100": 1010, "0.01": 1, "999999999.99": 99999999999, "1E+2": 10000,
		"10.10000000000000000000000000000000000000": 1010, "0.1e1": 100, "9007199.11": 900719911, "1e-2": 1,
	} {
		var in newSale
		if err := body.Decode(sale(`"amount_brl":`+token), &in); err != nil || in.AmountBRL != want {
			t.Errorf("%s: got %d, %v; want %d centavos", token, in.AmountBRL, err, want)
		}
	}
}

func TestAnExponentBombCostsNoMoreThanAnOrdinaryNumber(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	bomb := sale(`"extra":[` + strings.Repeat("1E1000000000,", 4000) + `0],"amount_brl":1E1000000000`)
	start := time.Now()
	refusal(t, body.Decode(bomb, new(newSale)))
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %s", took)
	}
}

func TestExternalRefs(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	for token, want := range map[string]string{
		`""`:                                    "/external_ref too_short",
		`null`:                                  "/external_ref type",
		`1`:                                     "/external_ref type",
		`"` + strings.Repeat("a", 256) + `"`:    "/external_ref too_long",
		`"` + strings.Repeat("\U0001f600", 256): " syntax",
		`"` + strings.Repeat("é", 256) + `"`:    "/external_ref too_long",
		`"\u0000"`:                              "/external_ref format",
		`"\ud800"`:                              " syntax",
	} {
		got := refusal(t, body.Decode(sale(`"external_ref":`+token), new(newSale)))
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%.40s: got %q; want %q", token, got, want)
		}
	}
	for _, ref := range []string{
		strings.Repeat("a", 255), strings.Repeat("\U0001f600", 255), "A", "a", "\u00e9", "e\u0301",
		"'; drop table sales; --", "\u2028", "\ufeff",
	} {
		var in newSale
		if err := body.Decode(sale(`"external_ref":"`+ref+`"`), &in); err != nil || in.ExternalRef != ref {
			t.Errorf("%.20q: got %.20q, %v", ref, in.ExternalRef, err)
		}
	}
	var in newSale
	if err := body.Decode(sale(`"external_ref":"\ud83d\ude00\/\u0041"`), &in); err != nil || in.ExternalRef != "\U0001f600/A" {
		t.Errorf("escapes: got %q, %v", in.ExternalRef, err)
	}
}

func TestIdsAndTimes(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	base := string(sale(""))
	const id = `"0197f0a2-1111-7abc-8def-0123456789ab"`
	for _, token := range []string{
		`"x"`, `"{0197f0a2-1111-7abc-8def-0123456789ab}"`, `"urn:uuid:0197f0a2-1111-7abc-8def-0123456789ab"`,
		`"0197f0a211117abc8def0123456789ab"`, `"0197f0a2-1111-7abc-8def-0123456789a"`, `"0197f0a2-1111-7abc-8def-0123456789ag"`,
		`"0197f0a2-1111-7abc-8def0-123456789ab"`, `"0197f0a2_1111_7abc_8def_0123456789ab"`, `" 0197f0a2-1111-7abc-8def-0123456789ab"`, `""`,
	} {
		got := refusal(t, body.Decode([]byte(strings.Replace(base, id, token, 1)), new(newSale)))
		if !slices.Equal(got, []string{"/campaign_id format"}) {
			t.Errorf("%s: got %q", token, got)
		}
	}
	if got := refusal(t, body.Decode([]byte(strings.Replace(base, id, "7", 1)), new(newSale))); !slices.Equal(got, []string{"/campaign_id type"}) {
		t.Errorf("a number: got %q", got)
	}
	var upper newSale
	if err := body.Decode([]byte(strings.Replace(base, id, strings.ToUpper(id), 1)), &upper); err != nil {
		t.Error(err)
	}
	if got := `"` + upper.CampaignID.String() + `"`; got != id {
		t.Errorf("an upper-case id became %s", got)
	}

	for token, want := range map[string]string{
		`"yesterday"`: "format", `"2026-13-01T00:00:00Z"`: "format", `"2026-02-30T00:00:00Z"`: "format",
		`"2026-02-01T00:00:00"`: "format", `"2026-02-01"`: "format", "1767225600": "type",
	} {
		got := refusal(t, body.Decode(sale(`"sold_at":`+token), new(newSale)))
		if !slices.Equal(got, []string{"/sold_at " + want}) {
			t.Errorf("%s: got %q", token, got)
		}
	}
	var in newSale
	if err := body.Decode(sale(`"sold_at":"2026-03-01T12:00:00.1234567-03:00","unknown":{"a":[1]}`), &in); err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 3, 1, 15, 0, 0, 123456000, time.UTC); in.SoldAt == nil || !in.SoldAt.Equal(want) {
		t.Errorf("got %v; want %v", in.SoldAt, want)
	}
}

func TestAMismatchOfStructAndSchemaIsNotTheCallersFault(t *testing.T) {
	body := shopBody(t, "POST", "/api/v1/sales")
	err := body.Decode(sale(""), newSale{})
	if err == nil || fault.Of(err) != nil {
		t.Errorf("got %v; want an error that is no fault", err)
	}
}
