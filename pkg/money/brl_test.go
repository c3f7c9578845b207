package money_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"partilha.dev/pkg/money"
)

func TestParseBRLReadsTheExactValueOfANumberToken(t *testing.T) {
	for token, want := range map[string]money.BRL{
		"1e2":                   10000,
		"1E+2":                  10000,
		"10.100":                1010,
		"10.50":                 1050,
		"0.01":                  1,
		"1e-2":                  1,
		"12345e-2":              12345,
		"1.05e1":                1050,
		"0.00105e4":             1050,
		"100":                   10000,
		"-0.05":                 -5,
		"0":                     0,
		"-0":                    0,
		"0e99999999999999":      0,
		"-0.000e-9999":          0,
		"999999999.99":          99999999999,
		"92233720368547758.07":  math.MaxInt64,
		"-92233720368547758.08": math.MinInt64,
		"1" + strings.Repeat("0", 5000) + "e-5000":         100,
		"0." + strings.Repeat("0", 5000) + "1e5000":        10,
		"10.5" + strings.Repeat("0", 5000):                 1050,
		"1e" + strings.Repeat("0", 5000) + "1":             1000,
		"1234567" + strings.Repeat("0", 400) + ".000e-402": 1234567,
	} {
		got, err := money.ParseBRL(token)
		if err != nil || got != want {
			t.Errorf("ParseBRL(%.40q) = %d, %v; want %d", token, got.Centavos(), err, want.Centavos())
		}
	}
}

func TestParseBRLSaysWhatIsWrongWithAToken(t *testing.T) {
	for token, want := range map[string]error{
		"":         money.ErrSyntax,
		"-":        money.ErrSyntax,
		"+1":       money.ErrSyntax,
		"010":      money.ErrSyntax,
		"-01":      money.ErrSyntax,
		"00":       money.ErrSyntax,
		".5":       money.ErrSyntax,
		"1.":       money.ErrSyntax,
		"1.e2":     money.ErrSyntax,
		"1e":       money.ErrSyntax,
		"1e+":      money.ErrSyntax,
		"1e-+2":    money.ErrSyntax,
		"1e2.5":    money.ErrSyntax,
		"1e2x":     money.ErrSyntax,
		"--1":      money.ErrSyntax,
		"1.2.3":    money.ErrSyntax,
		"1,50":     money.ErrSyntax,
		"1_000":    money.ErrSyntax,
		" 1":       money.ErrSyntax,
		"1 ":       money.ErrSyntax,
		"0x10":     money.ErrSyntax,
		"NaN":      money.ErrSyntax,
		"Infinity": money.ErrSyntax,
		"null":     money.ErrSyntax,
		"true":     money.ErrSyntax,
		`"10.00"`:  money.ErrSyntax,
		"١":        money.ErrSyntax,

		"10.555":                               money.ErrTooManyDecimals,
		"0.001":                                money.ErrTooManyDecimals,
		"1e-3":                                 money.ErrTooManyDecimals,
		"1e-400":                               money.ErrTooManyDecimals,
		"1e-" + strings.Repeat("9", 5000):      money.ErrTooManyDecimals,
		strings.Repeat("9", 40) + ".555":       money.ErrTooManyDecimals,
		"0." + strings.Repeat("0", 5000) + "1": money.ErrTooManyDecimals,

		"92233720368547758.08":           money.ErrOutOfRange,
		"-92233720368547758.09":          money.ErrOutOfRange,
		"99999999999999999.99":           money.ErrOutOfRange,
		"184467440737095516.17":          money.ErrOutOfRange, // 2^64 + 1 centavos
		"1e17":                           money.ErrOutOfRange,
		"1e400":                          money.ErrOutOfRange,
		"1E1000000000":                   money.ErrOutOfRange,
		"-1E1000000000":                  money.ErrOutOfRange,
		"1e18446744073709551616":         money.ErrOutOfRange, // 2^64
		"1e" + strings.Repeat("9", 5000): money.ErrOutOfRange,
		strings.Repeat("9", 40):          money.ErrOutOfRange,
	} {
		got, err := money.ParseBRL(token)
		if !errors.Is(err, want) || got != 0 {
			t.Errorf("ParseBRL(%.40q) = %s, %v; want %v", token, got, err, want)
		}
	}
}

func TestBRLIsWrittenWithExactlyTwoDecimals(t *testing.T) {
	for amount, want := range map[money.BRL]string{
		0:             "0.00",
		5:             "0.05",
		-5:            "-0.05",
		50:            "0.50",
		1050:          "10.50",
		-100:          "-1.00",
		math.MaxInt64: "92233720368547758.07",
		math.MinInt64: "-92233720368547758.08",
	} {
		if got := amount.String(); got != want {
			t.Errorf("BRL(%d) is %q; want %q", amount.Centavos(), got, want)
		}
	}
}

func BenchmarkParseBRL(b *testing.B) {
	for name, token := range map[string]string{
		"ordinary":      "1234567.89",
		"exponent bomb": "1E1000000000",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = money.ParseBRL(token)
			}
		})
	}
}
