package money

import "github.com/shopspring/decimal"

// Share returns what falls to part when amount is spread evenly over whole: amount × part
// / whole, rounded half away from zero to the centavo. Of the whole it is the amount itself.
//
// Parts that are handed out one after another return the amount to the centavo if each gets
// the share of all parts so far less what was handed out before. Where amount and whole are
// positive the share never shrinks as part grows, so none of these differences is negative.
//
// The result is exact while part is no larger than whole. Beyond that it may leave 64 bits,
// and is then the nearest amount that exists. A whole of 0 has no parts: their share is 0.
func Share(amount, part, whole BRL) BRL {
	if whole == 0 {
		return 0
	}
	centavos := decimal.NewFromInt(int64(amount)).Mul(decimal.NewFromInt(int64(part)))
	return nearest(centavos.DivRound(decimal.NewFromInt(int64(whole)), 0).Coefficient())
}
