package money_test

import (
	"math"
	"math/big"
	"testing"

	"partilha.dev/pkg/money"
)

func TestAShareIsRoundedHalfAwayFromZeroToTheCentavo(t *testing.T) {
	for _, row := range []struct{ amount, part, whole, want money.BRL }{
		{503, 10050, 10050, 503}, {503, 0, 10050, 0}, {503, 5025, 10050, 252}, {503, 5024, 10050, 251},
		{1, 1, 2, 1}, {1, 1, 3, 0}, {1, 2, 3, 1}, {0, 1, 3, 0}, {-1, 1, 2, -1}, {1, 1, -2, -1}, {-1, 1, 3, 0},
		{10000, 1, 3, 3333}, {10000, 2, 3, 6667},
		{99_999_999_999, 99_999_999_998, 99_999_999_999, 99_999_999_998},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}, {math.MinInt64, 1, 1, math.MinInt64},
		{math.MaxInt64, 3, 2, math.MaxInt64}, {math.MaxInt64, -3, 2, math.MinInt64},
		{7, 3, 0, 0},
	} {
		if got := money.Share(row.amount, row.part, row.whole); got != row.want {
			t.Errorf("Share(%d, %d, %d) = %d; want %d", row.amount, row.part, row.whole, got, row.want)
		}
	}
}

// FuzzShare compares with whole-number arithmetic: half of the divisor is added, away from
// zero, and the rest cut off.
func FuzzShare(f *testing.F) {
	f.Add(int64(503), int64(5025), int64(10050))
	f.Add(int64(1), int64(1), int64(2))
	f.Add(int64(-1), int64(1), int64(2))
	f.Add(int64(99_999_999_999), int64(33_333_333_333), int64(99_999_999_999))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), int64(3))
	f.Add(int64(5), int64(5), int64(0))
	f.Fuzz(func(t *testing.T, amount, part, whole int64) {
		want := int64(0)
		if whole != 0 {
			product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(part))
			divisor := new(big.Int).Abs(big.NewInt(whole))
			double := new(big.Int).Lsh(new(big.Int).Abs(product), 1)
			double.Add(double, divisor)
			share := double.Quo(double, new(big.Int).Lsh(divisor, 1))
			if (product.Sign() < 0) != (whole < 0) {
				share.Neg(share)
			}
			switch want = share.Int64(); {
			case share.IsInt64():
			case share.Sign() > 0:
				want = math.MaxInt64
			default:
				want = math.MinInt64
			}
		}
		if got := money.Share(money.BRL(amount), money.BRL(part), money.BRL(whole)); got.Centavos() != want {
			t.Errorf("Share(%d, %d, %d) = %d; want %d", amount, part, whole, got, want)
		}
	})
}
