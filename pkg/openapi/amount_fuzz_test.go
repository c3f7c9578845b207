package openapi_test

import (
	"math/big"
	"regexp"
	"slices"
	"testing"
	"time"
)

// jsonNumber is the grammar of a JSON number: mantissa and exponent.
var jsonNumber = regexp.MustCompile(`\A(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)(?:[eE]([+-]?[0-9]+))?\z`)

// FuzzAmount sends a sale of any amount. math/big decides whether it is one of 0.01 to
// 999999999.99 with at most 2 decimals, how many centavos that is, or all that is wrong
// with it; none may take long.
func FuzzAmount(f *testing.F) {
	body := loadShop(f).Body("POST", "/api/v1/sales")
	for _, token := range []string{
		"1e2", "10.100", "0.01", "999999999.99", "10.555", "1e400", "1E1000000000", "1e-400", "-1e-1000000000", "0.001", "0.0100", "0.00999999999999999999999",
		"1234567890123456789012345678901234567890", "010", "+1", ".5", "1.", "", "-", "-0", "-0.0", "-0e5", "0", "0e9999999999999999999", "1000000000", "1000000000.00",
		"999999999.990000000000000000000000000001", "99999999999e-2", "0.0000000001e8", "100000000000000000000000000000000000000000e-40", "999999999.990", "-1", "-0.001",
		"0.0000000000000000000000000000000000000000123e41", "1e-+1", "NaN", "null", `"1"`, "1e00000000000000000000000000000000000000001", "9007199254740993", "0.1e-1", "1e-2", "1e-3",
	} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		var in newSale
		began := time.Now()
		err := body.Decode(sale(`"amount_brl":`+token), &in)
		if took := time.Since(began); took > time.Second {
			t.Errorf("reading %.100q took %s", token, took)
		}
		var found []string
		if err != nil {
			found = refusal(t, err)
		}
		value := valueOf(token)
		if value == nil { // no number, and perhaps more than one value
			return
		}
		centavos := new(big.Rat).Mul(value, big.NewRat(100, 1))
		var want []string
		if centavos.Cmp(big.NewRat(1, 1)) < 0 {
			want = append(want, "/amount_brl too_small")
		}
		if centavos.Cmp(big.NewRat(99_999_999_999, 1)) > 0 {
			want = append(want, "/amount_brl too_large")
		}
		if !centavos.IsInt() {
			want = append(want, "/amount_brl too_many_decimals")
		}
		slices.Sort(want)
		if !slices.Equal(found, want) {
			t.Errorf("%.100q is refused for %q, want %q", token, found, want)
		}
		if err == nil && centavos.Num().Cmp(big.NewInt(in.AmountBRL.Centavos())) != 0 {
			t.Errorf("%.100q became %d centavos, want %s", token, in.AmountBRL.Centavos(), centavos.Num())
		}
	})
}

// valueOf is the exact value of a token; nil if it is no JSON number. An exponent is cut
// to 100 more than the token is long, where the value is beyond every bound all the same.
func valueOf(token string) *big.Rat {
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
		exponent = most.Mul(most, big.NewInt(int64(exponent.Sign())))
	}
	value, ok := new(big.Rat).SetString(parts[1] + "e" + exponent.String())
	if !ok {
		panic(token) // it has the form of a number
	}
	return value
}
