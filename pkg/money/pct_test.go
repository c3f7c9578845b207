package money_test

import (
	"errors"
	"math"
	"testing"

	"partilha.dev/pkg/money"
)

func TestParsePctReadsUpToFourDecimals(t *testing.T) {
	for token, want := range map[string]money.Pct{
		"28.75":                287500,
		"5":                    50000,
		"5.0000000":            50000,
		"1e2":                  1000000,
		"0.0001":               1,
		"-0.5":                 -5000,
		"0":                    0,
		"922337203685477.5807": math.MaxInt64,
	} {
		got, err := money.ParsePct(token)
		if err != nil || got != want {
			t.Errorf("ParsePct(%q) = %d, %v; want %d", token, int64(got), err, int64(want))
		}
	}
}

func TestParsePctSaysWhatIsWrongWithAToken(t *testing.T) {
	for token, want := range map[string]error{
		"5%":                   money.ErrSyntax,
		"05":                   money.ErrSyntax,
		"":                     money.ErrSyntax,
		"28.75001":             money.ErrTooManyDecimals,
		"1e-5":                 money.ErrTooManyDecimals,
		"1e-1000000000":        money.ErrTooManyDecimals,
		"922337203685477.5808": money.ErrOutOfRange,
		"1E1000000000":         money.ErrOutOfRange,
	} {
		got, err := money.ParsePct(token)
		if !errors.Is(err, want) || got != 0 {
			t.Errorf("ParsePct(%q) = %s, %v; want %v", token, got, err, want)
		}
	}
}

func TestPctIsWrittenInItsShortestForm(t *testing.T) {
	for pct, want := range map[money.Pct]string{
		0:             "0",
		1:             "0.0001",
		50000:         "5",
		287500:        "28.75",
		1000000:       "100",
		-5000:         "-0.5",
		math.MinInt64: "-922337203685477.5808",
	} {
		if got := pct.String(); got != want {
			t.Errorf("Pct(%d) is %q; want %q", int64(pct), got, want)
		}
	}
}
