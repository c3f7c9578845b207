package money

import (
	"math"
	"strconv"
	"strings"
)

// number is a JSON number token taken apart without computing anything:
// its value is ±digits × 10^scale.
type number struct {
	negative bool
	digits   string // from the first to the last digit that is not 0, perhaps with the point among them; "" is zero
	point    int64  // where in digits the point stands; len(digits) if it does not
	count    int64  // how many digits there are
	scale    int64  // the power of ten of the last digit
	exponent int64  // as written, or at least farExponent in size if it is larger
}

// farExponent is where reading an exponent stops. No token is long enough for its digits
// to bring such a power of ten back to an ordinary size, so what follows changes nothing.
const farExponent = 1 << 56

// parseUnits returns how many units of 10^-decimals the token amounts to, exactly.
func parseUnits(token string, decimals int64) (int64, error) {
	n, err := lex(token)
	if err != nil {
		return 0, err
	}
	return n.units(decimals)
}

// lex takes a token apart by the grammar of RFC 8259, section 6, or fails with ErrSyntax.
func lex(token string) (number, error) {
	unsigned, negative := strings.CutPrefix(token, "-")
	whole := digitRun(unsigned)
	if whole == 0 || whole > 1 && unsigned[0] == '0' {
		return number{}, ErrSyntax
	}
	end := whole
	if end < len(unsigned) && unsigned[end] == '.' {
		fraction := digitRun(unsigned[end+1:])
		if fraction == 0 {
			return number{}, ErrSyntax
		}
		end += 1 + fraction
	}
	exponent, err := lexExponent(unsigned[end:])
	if err != nil {
		return number{}, err
	}

	n := number{negative: negative, exponent: exponent}
	first, last := 0, end-1
	for first < end && (unsigned[first] == '0' || unsigned[first] == '.') {
		first++
	}
	if first == end {
		return n, nil
	}
	for unsigned[last] == '0' || unsigned[last] == '.' {
		last--
	}
	n.digits = unsigned[first : last+1]
	n.count = int64(len(n.digits))
	n.point = n.count
	if first < whole && whole < last {
		n.point = int64(whole - first)
		n.count--
	}
	n.scale = int64(whole-last) + exponent
	if last < whole {
		n.scale-- // no point between the last digit and the end of the whole part
	}
	return n, nil
}

// lexExponent reads what follows the digits of a number: nothing, or an exponent of any length.
func lexExponent(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	if s[0] != 'e' && s[0] != 'E' {
		return 0, ErrSyntax
	}
	s, negative := strings.CutPrefix(s[1:], "-")
	if !negative {
		s = strings.TrimPrefix(s, "+")
	}
	if s == "" || digitRun(s) != len(s) {
		return 0, ErrSyntax
	}
	var exponent int64
	for i := 0; i < len(s) && exponent < farExponent; i++ {
		exponent = exponent*10 + int64(s[i]-'0')
	}
	if negative {
		exponent = -exponent
	}
	return exponent, nil
}

// digitRun returns how many digits s begins with.
func digitRun(s string) int {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// whole returns how many digits stand before the point when n is written without an
// exponent; 0 or less if n is below 1.
func (n number) whole() int64 { return n.count + n.scale }

// digit returns the digit that stands for 10^power when n is written without an exponent.
func (n number) digit(power int64) byte {
	i := n.whole() - 1 - power
	if i < 0 || i >= n.count {
		return '0'
	}
	if i >= n.point {
		i++
	}
	return n.digits[i]
}

// units returns n × 10^decimals where that is a whole number of at most 64 bits.
func (n number) units(decimals int64) (int64, error) {
	if n.count == 0 {
		return 0, nil
	}
	lowest := -decimals
	if n.scale < lowest {
		return 0, ErrTooManyDecimals
	}
	const maxDigits = 19 // of an int64; so many nines still fit a uint64
	if n.whole()+decimals > maxDigits {
		return 0, ErrOutOfRange
	}
	var magnitude uint64
	for power := n.whole() - 1; power >= lowest; power-- {
		magnitude = magnitude*10 + uint64(n.digit(power)-'0')
	}
	switch {
	case magnitude <= math.MaxInt64 && n.negative:
		return -int64(magnitude), nil
	case magnitude <= math.MaxInt64:
		return int64(magnitude), nil
	case magnitude == -math.MinInt64 && n.negative:
		return math.MinInt64, nil
	default:
		return 0, ErrOutOfRange
	}
}

// formatUnits writes so many units of 10^-decimals, with exactly that many decimals.
func formatUnits(units int64, decimals int) []byte {
	const longest = len("-922337203685477.5808")
	text := make([]byte, 0, longest)
	magnitude := uint64(units)
	if units < 0 {
		text = append(text, '-')
		magnitude = -magnitude
	}
	one := uint64(1)
	for range decimals {
		one *= 10
	}
	text = strconv.AppendUint(text, magnitude/one, 10)
	point := len(text)
	text = strconv.AppendUint(text, one+magnitude%one, 10) // the 1 in front keeps the zeros
	text[point] = '.'
	return text
}
