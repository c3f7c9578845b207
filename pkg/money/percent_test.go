package money_test

import (
	"math"
	"math/big"
	"testing"

	"partilha.dev/pkg/money"
)

func TestPercentRoundsHalfAwayFromZeroToTheCentavo(t *testing.T) {
	for _, row := range []struct{ amount, pct, want string }{
		{"100.50", "5", "5.03"},
		{"0.95", "30", "0.29"},
		{"0.05", "10", "0.01"},
		{"2.00", "28.75", "0.58"},
		{"0.01", "10", "0.00"},
		{"-100.50", "5", "-5.03"},
		{"-0.05", "10", "-0.01"},
		{"0.05", "-10", "-0.01"},
		{"-0.01", "10", "0.00"},
		{"0.05", "9.9999", "0.00"}, // just under a half: rounding twice would make it 0.01
		{"0.01", "50", "0.01"},
		{"0.01", "49.9999", "0.00"},
		{"999999999.99", "100", "999999999.99"},
		{"999999999.99", "0.0001", "1000.00"},
		{"123.45", "0", "0.00"},
		{"0", "28.75", "0.00"},
		{"92233720368547758.07", "100", "92233720368547758.07"},
		{"92233720368547758.07", "99.9999", "92233628134827389.52"},
		{"-92233720368547758.08", "100", "-92233720368547758.08"},
	} {
		amount, err := money.ParseBRL(row.amount)
		if err != nil {
			t.Fatal(err)
		}
		pct, err := money.ParsePct(row.pct)
		if err != nil {
			t.Fatal(err)
		}
		if got := money.Percent(amount, pct).String(); got != row.want {
			t.Errorf("%s%% of %s is %s; want %s", row.pct, row.amount, got, row.want)
		}
	}
}

func TestAShareThatLeaves64BitsBecomesTheNearestAmount(t *testing.T) {
	const twice = money.Pct(2_000_000)
	if got := money.Percent(math.MaxInt64, twice); got != math.MaxInt64 {
		t.Errorf("twice the largest amount is %s", got)
	}
	if got := money.Percent(math.MinInt64, twice); got != math.MinInt64 {
		t.Errorf("twice the smallest amount is %s", got)
	}
	if got := money.Percent(math.MinInt64, -twice/2); got != math.MaxInt64 {
		t.Errorf("the smallest amount, negated, is %s", got)
	}
}

// FuzzPercent compares with whole-number arithmetic: a centavo at a ten-thousandth of a
// percent is a millionth of a centavo.
func FuzzPercent(f *testing.F) {
	f.Add(int64(10050), int64(50000))
	f.Add(int64(95), int64(300000))
	f.Add(int64(5), int64(100000))
	f.Add(int64(200), int64(287500))
	f.Add(int64(-5), int64(100000))
	f.Add(int64(1), int64(499999))
	f.Add(int64(99999999999), int64(999999))
	f.Add(int64(math.MaxInt64), int64(1000000))
	f.Add(int64(math.MinInt64), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, amount, pct int64) {
		const millionths, half = 1_000_000, 500_000
		share := new(big.Int).Mul(big.NewInt(amount), big.NewInt(pct))
		share.Add(share, big.NewInt(int64(share.Sign())*half))
		share.Quo(share, big.NewInt(millionths))

		want := share.Int64()
		if !share.IsInt64() && share.Sign() > 0 {
			want = math.MaxInt64
		} else if !share.IsInt64() {
			want = math.MinInt64
		}
		if got := money.Percent(money.BRL(amount), money.Pct(pct)); got.Centavos() != want {
			t.Errorf("Percent(%d, %d) = %d; want %d", amount, pct, got.Centavos(), want)
		}
	})
}

func BenchmarkPercent(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		money.Percent(99999999999, 287500)
	}
}
