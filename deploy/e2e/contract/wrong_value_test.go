package contract

import (
	"fmt"
	"math/big"
	"strings"
)

// text adds what can be wrong with a text.
func (g *generator) text(s *shape, path []string) error {
	said := unquoted(string(at(g.right, path).(token)))
	g.value("U+0000", path, "format", token(`"a\u0000b"`))
	for name, raw := range map[string]string{
		"half a surrogate pair": `"\ud800"`, "the other half": `"a\udc00b"`, "two first halves": `"\ud800\ud800"`, "the halves in the wrong order": `"\udc00\ud800"`,
		"invalid UTF-8": "\"a\xffb\"", "a surrogate in UTF-8": "\"\xed\xa0\x80\"", "overlong UTF-8": "\"\xc0\xaf\"", "half a character": "\"\xe2\x82\"",
		"a line break": "\"a\nb\"", "a tab": "\"a\tb\"", "U+0000 as it is": "\"a\x00b\"", "an escape that is none": `"\x41"`, "half an escape": `"\u12"`,
	} {
		g.value(name, path, "syntax", token(raw))
	}
	if len(s.enum) > 0 {
		g.value("nothing", path, "not_allowed", text(""))
		return nil
	}
	if s.minLength != nil && *s.minLength > 0 {
		g.value("too short", path, "too_short", text(strings.Repeat("x", *s.minLength-1)))
		g.bound("as short as may be", path, "too_short", text(strings.Repeat("é", *s.minLength)))
	}
	if s.maxLength != nil {
		for _, letter := range []string{"x", "é", "😀"} {
			g.value("too long by one "+letter, path, "too_long", text(strings.Repeat(letter, *s.maxLength+1)))
			g.bound("as long as may be in "+letter, path, "too_long", text(strings.Repeat(letter, *s.maxLength)))
		}
		g.value("too long by one escape", path, "too_long", token(`"`+strings.Repeat(`\u0041`, *s.maxLength+1)+`"`))
	}
	if s.pattern != "" {
		for _, wrong := range []string{said + " ", " " + said, said + "é", said + "\n", "/", "%", "\u200b" + said} {
			g.value(fmt.Sprintf("another form %q", wrong), path, "format", text(wrong))
		}
	}
	if s.format != "" {
		wrong, known := wrongFormats[s.format]
		if !known {
			return fmt.Errorf("no wrong values are known for the format %s", s.format)
		}
		for _, value := range wrong {
			g.value(fmt.Sprintf("not a %s %q", s.format, value), path, "format", text(value))
		}
		for _, value := range fairFormats[s.format] {
			g.bound("a "+s.format+" "+value, path, "format", text(value))
		}
	}
	return nil
}

var wrongFormats = map[string][]string{
	"uuid": {
		"text", "{01890000-0000-7000-8000-000000000000}", "urn:uuid:01890000-0000-7000-8000-000000000000", "01890000000070008000000000000000",
		"01890000-0000-7000-8000-00000000000", "01890000-0000-7000-8000-0000000000000", "01890000-0000-7000-8000-00000000000g", " 01890000-0000-7000-8000-000000000000",
		"01890000-0000-7000-8000-000000000000 ", "0189000-00000-7000-8000-000000000000", "01890000_0000_7000_8000_000000000000", "０1890000-0000-7000-8000-00000000000",
		"' or 1=1 --", "*", "",
	},
	"date-time": {
		"yesterday", "now", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-30T00:00:00Z", "2025-02-29T00:00:00Z", "2026-07-32T00:00:00Z", "2026-07-14T10:02:41", "2026-07-14",
		"1999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2000-01-01T00:00:00+01:00", "10000-01-01T00:00:00Z", "-2026-07-14T10:02:41Z", "2026-07-14T24:00:00Z", "2026-07-14T10:60:00Z",
		"2026-07-14T10:02:60Z", "2026-07-14t10:02:41Z", "2026-07-14T10:02:41z", "2026-07-14 10:02:41Z", "2026-07-14T10:02Z", "2026-07-14T10:02:41.Z", "2026-07-14T10:02:41,5Z",
		"2026-07-14T10:02:41+24:00", "2026-07-14T10:02:41+3", "2026-07-14T10:02:41+03:60", "2026-07-14T10:02:41-", "2026-07-14T10:02:41 -03:00", "20260714T100241Z", "2026-W29-2T10:02:41Z",
		"1784023361", "Tue, 14 Jul 2026 10:02:41 GMT", "14/07/2026 10:02:41", "2026-07-14T10:02:41Z ", "２026-07-14T10:02:41Z", "",
	},
	"email": {"text", "@example.com", "ana@", "ana", "ana@example.com@example.com/", "a b@example.com"},
	"uri":   {"text", "/path", "//example.com/", "http://[::1", "http://exa mple.com/", "%zz"},
}

var fairFormats = map[string][]string{
	"uuid": {"01890000-0000-7000-8000-00000000ABCD", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	"date-time": {
		"2026-07-14T10:02:41Z", "2026-07-14T10:02:41-03:00", "2026-07-14T10:02:41-0300", "2026-07-14T10:02:41+05", "2026-07-14T10:02:41.123456789-03:00", "2000-01-01T00:00:00Z", "2028-02-29T00:00:00Z",
	},
	"email": {"ana+loja@example.com"},
}

// number adds what can be wrong with a number.
func (g *generator) number(s *shape, path []string) {
	for _, broken := range []string{"010", "+1", ".5", "1.", "1e", "1e+", "--1", "0x10", "1_000", "1,5", "١", "1f", "- 1", "-", "1.5.5"} {
		g.value("the token "+broken, path, "syntax", token(broken))
	}
	for _, said := range []string{"10.00", "", "NaN", "Infinity"} {
		g.value("the text "+said, path, "type", text(said))
	}
	unit := s.step
	if unit == nil {
		unit = big.NewRat(1, 1)
	}
	if s.minimum != nil {
		g.value("less than the least", path, "too_small", token(plain(new(big.Rat).Sub(s.minimum, unit))))
		g.value("far less than the least", path, "too_small", token("-1E1000000000"))
		g.bound("the least", path, "too_small", token(plain(s.minimum)))
	}
	if s.above != nil {
		g.value("the bound itself", path, "too_small", token(plain(s.above)))
		g.value("less than the bound", path, "too_small", token("-1"))
	}
	if s.minimum != nil && s.minimum.Sign() > 0 || s.above != nil && s.above.Sign() >= 0 {
		for _, zero := range []string{"0", "-0", "0.00", "-0.0", "0e5", "-0E-5", "0e99999999999999999999"} {
			g.value("the nothing "+zero, path, "too_small", token(zero))
		}
	}
	if s.maximum != nil {
		most := plain(s.maximum)
		g.value("more than the most", path, "too_large", token(plain(new(big.Rat).Add(s.maximum, unit))))
		for _, huge := range []string{"1e400", "1E1000000000", "1e99999999999999999999", "1234567890123456789012345678901234567890", "9" + strings.Repeat("0", 5000)} {
			g.value(fmt.Sprintf("the huge %.30s", huge), path, "too_large", token(huge))
		}
		g.bound("the most", path, "too_large", token(most))
		if !strings.Contains(most, ".") {
			most += ".0"
		}
		g.bound("the most with zeros after it", path, "too_many_decimals", token(most+"000"))
	}
	if s.step != nil {
		least := new(big.Rat).Add(new(big.Rat).Quo(s.step, big.NewRat(10, 1)), big.NewRat(10, 1))
		for _, fine := range []string{plain(least), "1e-400", "1e-1000000000", "1.00000000000000000000000000000000000001"} {
			g.value("too fine "+fine, path, "too_many_decimals", token(fine))
		}
		g.bound("an exponent", path, "too_many_decimals", token("1e1"))
	}
	if s.types["integer"] && !s.types["number"] {
		for _, fraction := range []string{"0.5", "1e-1", "1e-400", "1.00000000000000000000000000000000000001"} {
			g.value("the fraction "+fraction, path, "type", token(fraction))
		}
		for _, whole := range []string{"1e1", "10.0", "0e5", "-0"} {
			g.bound("the whole number "+whole, path, "type", token(whole))
		}
	}
}
