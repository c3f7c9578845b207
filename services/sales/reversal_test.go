package sales

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

// rounded is a / b, halves up; both are positive or zero.
func rounded(a, b *big.Int) *big.Int {
	sum := new(big.Int).Lsh(a, 1)
	return sum.Quo(sum.Add(sum, b), new(big.Int).Lsh(b, 1))
}

// TestAnySplitOfAFullRefundReturnsTheWholeCommission refunds random sales in random parts
// and holds each step against whole-number arithmetic of any size.
func TestAnySplitOfAFullRefundReturnsTheWholeCommission(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		amount := 1 + random.Int64N([]int64{3, 100, 100_000, 99_999_999_999}[random.IntN(4)])
		pct := money.Pct(random.Int64N(1_000_001))
		sold := sale{Amount: money.BRL(amount), CommissionPct: pct, CommissionAmount: money.Percent(money.BRL(amount), pct)}
		commission, base := big.NewInt(int64(sold.CommissionAmount)), big.NewInt(amount)
		returned := new(big.Int)
		story := fmt.Sprintf("%s at %s %%", sold.Amount, pct)
		for parts := 0; sold.Refunded < sold.Amount; parts++ {
			part := sold.Amount - sold.Refunded
			if parts < 20 {
				part = 1 + money.BRL(random.Int64N(int64(part)))
			}
			made, err := decideRefund(sold, refundReport{Amount: part}, time.Now())
			if err != nil {
				t.Fatalf("%s, refunding %s: %v", story, part, err)
			}
			sold.Refunded += part
			story += " − " + part.String()
			want := rounded(new(big.Int).Mul(commission, big.NewInt(int64(sold.Refunded))), base)
			want.Sub(want, returned)
			if want.Cmp(big.NewInt(int64(made.CommissionReversed))) != 0 {
				t.Fatalf("%s takes back %s, want %s centavos", story, made.CommissionReversed, want)
			}
			if made.CommissionReversed < 0 || made.CommissionReversed > part {
				t.Fatalf("%s takes back %s", story, made.CommissionReversed)
			}
			returned.Add(returned, want)
		}
		if returned.Cmp(commission) != 0 {
			t.Fatalf("%s took back %s of %s centavos", story, returned, commission)
		}
		if _, err := decideRefund(sold, refundReport{Amount: 1}, time.Now()); fault.KindOf(err) != fault.Rule {
			t.Fatalf("%s: one centavo more is answered %v", story, err)
		}
	}
}
