package money

import (
	"bytes"
	"fmt"
)

// Pct is a percentage, counted in ten-thousandths of a percent: 28.75% is Pct(287500).
type Pct int64

// pctDecimals is how many decimals of a percent one unit of Pct is.
const pctDecimals = 4

// ParsePct returns the exact value of a JSON number token which counts percent: "28.75".
//
// It fails with [ErrSyntax], with [ErrTooManyDecimals] after the fourth decimal, or with
// [ErrOutOfRange] beyond 64 bits. That a rate lies between 0 and 100 is for the caller to check.
func ParsePct(token string) (Pct, error) {
	units, err := parseUnits(token, pctDecimals)
	return Pct(units), err
}

// String returns the percentage in its shortest form and without a sign for percent: "28.75", "5".
func (p Pct) String() string { return string(p.shortest()) }

// MarshalJSON writes the percentage as a JSON number in its shortest form. It never fails.
func (p Pct) MarshalJSON() ([]byte, error) { return p.shortest(), nil }

// UnmarshalJSON reads a JSON number as [ParsePct] does. Every other token is an
// error, null included; on an error the percentage stays as it was.
func (p *Pct) UnmarshalJSON(token []byte) error {
	pct, err := ParsePct(string(token))
	if err != nil {
		return fmt.Errorf("read percentage: %w", err)
	}
	*p = pct
	return nil
}

func (p Pct) shortest() []byte {
	text := formatUnits(int64(p), pctDecimals)
	return bytes.TrimSuffix(bytes.TrimRight(text, "0"), []byte("."))
}
