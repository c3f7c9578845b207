package money_test

import (
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"testing"

	"partilha.dev/pkg/money"
)

// The grammar of a JSON number: mantissa and exponent.
var jsonNumber = regexp.MustCompile(`\A(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)(?:[eE]([+-]?[0-9]+))?\z`)

// oracle returns the value of a token as math/big reads it, or nil for no JSON number.
//
// An exponent is cut to 100 more than the token is long. The digits cannot make up for
// that, so a cut number is still over 10^99, or under 10^-99, or 0: it stands on the same
// side of everything that the tests compare with.
func oracle(t *testing.T, token string) *big.Rat {
	parts := jsonNumber.FindStringSubmatch(token)
	if parts == nil {
		return nil
	}
	exponent := new(big.Int)
	if parts[2] != "" {
		exponent.SetString(parts[2], 10)
	}
	most := big.NewInt(int64(len(token)) + 100)
	if exponent.CmpAbs(most) > 0 {
		most.Mul(most, big.NewInt(int64(exponent.Sign())))
		exponent = most
	}
	value, ok := new(big.Rat).SetString(parts[1] + "e" + exponent.String())
	if !ok {
		t.Fatalf("math/big cannot read %q", token)
	}
	return value
}

// decimals returns how many decimals value has, up to 5; the last stands for more as well.
func decimals(value *big.Rat) int {
	ten, scaled := big.NewRat(10, 1), new(big.Rat).Set(value)
	n := 0
	for n < 5 && !scaled.IsInt() {
		scaled.Mul(scaled, ten)
		n++
	}
	return n
}

// expected returns what a parser of so many decimals has to answer for value.
func expected(value *big.Rat, places int) (int64, error) {
	switch {
	case value == nil:
		return 0, money.ErrSyntax
	case decimals(value) > places:
		return 0, money.ErrTooManyDecimals
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	units := new(big.Rat).Mul(value, new(big.Rat).SetInt(scale)).Num()
	if !units.IsInt64() {
		return 0, money.ErrOutOfRange
	}
	return units.Int64(), nil
}

var seeds = []string{
	"1e2", "10.100", "0.01", "999999999.99", "10.555", "1e400", "1E1000000000", "1e-400", "-1e-1000000000",
	"1234567890123456789012345678901234567890", "010", "+1", ".5", "1.", "", "-", "-0", "-0.0", "-0e5", "0e9999999999999999999",
	"92233720368547758.07", "92233720368547758.08", "-92233720368547758.08", "922337203685477.5807", "28.75", "0.00001",
	"100000000000000000000000000000000000000000e-40", "0.0000000000000000000000000000000000000000123e41", "1e-+1", "null", `"1"`,
	"999999999999999999.99990000000000000000001", "1e00000000000000000000000000000000000000001", "1000000000000000000000000000000000.0",
}

func FuzzParseBRL(f *testing.F) {
	for _, token := range seeds {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		value := oracle(t, token)
		amount, err := money.ParseBRL(token)
		if want, wantErr := expected(value, 2); amount.Centavos() != want || !errors.Is(err, wantErr) {
			t.Errorf("ParseBRL(%q) = %d, %v; want %d, %v", token, amount.Centavos(), err, want, wantErr)
		}
		pct, err := money.ParsePct(token)
		if want, wantErr := expected(value, 4); int64(pct) != want || !errors.Is(err, wantErr) {
			t.Errorf("ParsePct(%q) = %d, %v; want %d, %v", token, int64(pct), err, want, wantErr)
		}
	})
}

func FuzzBound(f *testing.F) {
	for _, token := range seeds {
		f.Add(token)
	}
	var limits []*big.Rat
	for _, limit := range []string{"0", "0.0001", "0.01", "1", "9.9999", "100", "365", "999999999.99", "1000000000", "999999999999999999.9999"} {
		value, _ := new(big.Rat).SetString(limit)
		limits = append(limits, value, new(big.Rat).Neg(value))
	}
	f.Fuzz(func(t *testing.T, token string) {
		bounded := money.Bound(token)
		value := oracle(t, token)
		if value == nil {
			if bounded != token {
				t.Errorf("Bound(%q) = %q", token, bounded)
			}
			return
		}
		if len(bounded) > 32 || money.Bound(bounded) != bounded {
			t.Errorf("Bound(%q) = %q, which is long or not itself bounded", token, bounded)
		}
		parts := jsonNumber.FindStringSubmatch(bounded)
		if parts == nil {
			t.Fatalf("Bound(%q) = %q, which is no JSON number", token, bounded)
		}
		if exponent, err := strconv.Atoi(parts[2]); parts[2] != "" && (err != nil || exponent < -32 || exponent > 32) {
			t.Errorf("Bound(%q) = %q, with a costly exponent", token, bounded)
		}
		if (token[0] == '-') != (bounded[0] == '-') || value.Sign() == 0 && token[0] == '-' && bounded != "-0" {
			t.Errorf("Bound(%q) = %q, with another sign", token, bounded)
		}
		stand := oracle(t, bounded)
		if decimals(stand) != decimals(value) {
			t.Errorf("Bound(%q) = %q, with other decimals", token, bounded)
		}
		for _, limit := range limits {
			if stand.Cmp(limit) != value.Cmp(limit) {
				t.Errorf("Bound(%q) = %q, on another side of %s", token, bounded, limit.FloatString(4))
			}
		}
	})
}
