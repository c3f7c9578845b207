package money

import "fmt"

// BRL is an amount of Brazilian reais, counted in centavos: 10.50 is BRL(1050).
// It may be negative, and sums may go well beyond what one request may carry.
type BRL int64

// brlDecimals is how many decimals of a real one centavo is.
const brlDecimals = 2

// ParseBRL returns the exact value of a JSON number token; "1e2" and "10.100" are fine.
//
// It fails with [ErrSyntax], with [ErrTooManyDecimals] below one centavo, or with
// [ErrOutOfRange] beyond 64 bits of centavos. "-0" is 0. The bounds of an endpoint
// are not its business.
func ParseBRL(token string) (BRL, error) {
	centavos, err := parseUnits(token, brlDecimals)
	return BRL(centavos), err
}

// Centavos returns the amount in centavos.
func (b BRL) Centavos() int64 { return int64(b) }

// String returns the amount in reais with exactly two decimals: "10.50", "-0.05".
func (b BRL) String() string {
	return string(formatUnits(int64(b), brlDecimals))
}

// MarshalJSON writes the amount as a JSON number with exactly two decimals. It never fails.
func (b BRL) MarshalJSON() ([]byte, error) {
	return formatUnits(int64(b), brlDecimals), nil
}

// UnmarshalJSON reads a JSON number as [ParseBRL] does. Every other token is an
// error, null included; on an error the amount stays as it was.
func (b *BRL) UnmarshalJSON(token []byte) error {
	amount, err := ParseBRL(string(token))
	if err != nil {
		return fmt.Errorf("read amount: %w", err)
	}
	*b = amount
	return nil
}
