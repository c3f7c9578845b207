package money

const (
	// An ordinary token is at most so long, and its exponent at most so large in size.
	ordinaryLength   = 32
	ordinaryExponent = 32

	// Of other tokens so many digits are kept on either side of the point.
	boundWhole    = 18
	boundDecimals = 4

	// boundHuge stands for every whole part of more than boundWhole digits.
	boundHuge = "1000000000000000000"
)

// Bound returns a token that is cheap for exact arithmetic, such as that of a schema
// validator, and that passes and fails the same checks as token does.
//
// The same checks are: comparisons with any limit below 10^18 in size that has at most 4
// decimals; how many decimals there are, up to 4, or that there are more; the sign; and
// whether it is 0. Other than that the value of an extravagant token is not kept: a whole
// part of more than 18 digits becomes 10^18, and the decimals after the fourth become one.
//
// An ordinary token is returned as it is, but every spelling of minus zero is "-0". What
// is not a JSON number is returned as it is too. The result of a JSON number is at most
// 32 characters long, and no exponent in it exceeds 32.
func Bound(token string) string {
	n, err := lex(token)
	if err != nil {
		return token
	}
	ordinary := len(token) <= ordinaryLength && -ordinaryExponent <= n.exponent && n.exponent <= ordinaryExponent
	switch {
	case n.count == 0 && n.negative:
		return "-0"
	case ordinary:
		return token
	case n.count == 0:
		return "0"
	default:
		return n.bounded()
	}
}

// bounded writes n without an exponent, as far as Bound keeps it. The decimal 1 in place
// of all after the fourth leaves n strictly between the same two neighbours of 4 decimals.
func (n number) bounded() string {
	text := make([]byte, 0, ordinaryLength)
	if n.negative {
		text = append(text, '-')
	}
	switch whole := n.whole(); {
	case whole > boundWhole:
		text = append(text, boundHuge...)
	case whole <= 0:
		text = append(text, '0')
	default:
		for power := whole - 1; power >= 0; power-- {
			text = append(text, n.digit(power))
		}
	}
	decimals := -n.scale
	if decimals > 0 {
		text = append(text, '.')
	}
	for power := int64(1); power <= min(decimals, boundDecimals); power++ {
		text = append(text, n.digit(-power))
	}
	if decimals > boundDecimals {
		text = append(text, '1')
	}
	return string(text)
}
