package money_test

import (
	"strings"
	"testing"

	"partilha.dev/pkg/money"
)

func TestBoundReturnsOrdinaryTokensAsTheyAre(t *testing.T) {
	for _, token := range []string{
		"0", "0.00", "0e0", "1", "-1", "10.50", "10.100", "1e2", "1E+2", "0.01", "10.555", "1e-5", "999999999.99",
		"1e32", "1e-32", "12345678901234567890123456789012",
	} {
		if got := money.Bound(token); got != token {
			t.Errorf("Bound(%q) = %q", token, got)
		}
	}
}

func TestBoundReplacesExtravagantTokensByShortOnes(t *testing.T) {
	const huge = "1000000000000000000"
	zeros, nines := strings.Repeat("0", 5000), strings.Repeat("9", 5000)
	for token, want := range map[string]string{
		"1e400":                    huge,
		"-1e400":                   "-" + huge,
		"1E1000000000":             huge,
		"-1E+1000000000":           "-" + huge,
		"1e18446744073709551617":   huge,
		"1e" + nines:               huge,
		nines:                      huge,
		"1" + zeros + ".0" + zeros: huge,
		nines + ".555":             huge + ".555",
		nines + "." + nines:        huge + ".99991",

		"1e-400":                     "0.00001",
		"-1e-400":                    "-0.00001",
		"1e-1000000000":              "0.00001",
		"1e-18446744073709551617":    "0.00001",
		"-1e-" + nines:               "-0.00001",
		"0." + zeros + "1":           "0.00001",
		"10.50" + zeros + "1":        "10.50001",
		"0.1234" + nines:             "0.12341",
		"999999999.99" + zeros + "1": "999999999.99001",

		"0e1000000000":   "0",
		"0e-" + nines:    "0",
		"0." + zeros:     "0",
		"-0":             "-0",
		"-0.0":           "-0",
		"-0e5":           "-0",
		"-0e1000000000":  "-0",
		"-0.0e-" + nines: "-0",

		"1" + zeros + "e-5000":                  "1",
		"-12.50" + zeros:                        "-12.5",
		"1e" + zeros + "2":                      "100",
		"0." + zeros + "12345e5003":             "123.45",
		"999999999999999999" + zeros + "e-5000": "999999999999999999",
	} {
		if got := money.Bound(token); got != want {
			t.Errorf("Bound(%.40q) = %q; want %q", token, got, want)
		}
	}
}

func TestBoundLeavesAloneWhatIsNoNumber(t *testing.T) {
	for _, token := range []string{"", "-", "+1", "010", ".5", "1.", "1e", "null", `"1"`} {
		if got := money.Bound(token); got != token {
			t.Errorf("Bound(%q) = %q", token, got)
		}
	}
}

// A loop over such powers of ten would not come to an end, and a number that holds one
// would have to be allocated.
func TestAnExponentBombCostsNothing(t *testing.T) {
	manyDigits := strings.Repeat("9", 4000)
	for _, token := range []string{
		"1E1000000000", "-1E1000000000", "1e-1000000000", "0e1000000000",
		"1e" + manyDigits, "1e-" + manyDigits, "0e" + manyDigits, manyDigits,
	} {
		allocations := testing.AllocsPerRun(100, func() {
			_, _ = money.ParseBRL(token)
			_, _ = money.ParsePct(token)
		})
		if allocations != 0 {
			t.Errorf("parsing %.20q allocates %v times", token, allocations)
		}
		var bounded string
		allocations = testing.AllocsPerRun(100, func() { bounded = money.Bound(token) })
		if allocations > 1 || len(bounded) > 32 {
			t.Errorf("bounding %.20q allocates %v times for %d characters", token, allocations, len(bounded))
		}
	}
}

func BenchmarkBound(b *testing.B) {
	for name, token := range map[string]string{
		"ordinary":      "1234567.89",
		"exponent bomb": "1E1000000000",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				money.Bound(token)
			}
		})
	}
}
