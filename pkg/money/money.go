// Package money holds amounts, percentages and the one rule by which they are rounded.
//
// An amount is a whole number of centavos ([BRL]) and a percentage a whole number of
// ten-thousandths of a percent ([Pct]), so adding and comparing them is integer
// arithmetic and exact. Both are read from and written as JSON number tokens without
// ever passing through binary floating point. Only [Percent] and [Share] round.
//
// Tokens may come from anybody. Reading one takes time in proportion to its length and no
// more: the power of ten that an exponent stands for is compared, never written out.
package money

import "errors"

// What can be wrong with a token. [ParseBRL] and [ParsePct] return these as they are,
// the UnmarshalJSON methods wrap them; none of them quotes the token.
var (
	// ErrSyntax means that the token is no JSON number: a string, null, "+1", "010", ".5".
	ErrSyntax = errors.New("not a JSON number")
	// ErrTooManyDecimals means that the value is finer than the type can hold, also
	// after its trailing zeros are dropped. It wins over ErrOutOfRange where both apply.
	ErrTooManyDecimals = errors.New("too many decimals")
	// ErrOutOfRange means that the value is too large for the type, in either direction.
	ErrOutOfRange = errors.New("number out of range")
)
