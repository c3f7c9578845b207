package money

import (
	"math"
	"math/big"

	"github.com/shopspring/decimal"
)

// Percent returns pct percent of amount, rounded half away from zero to the centavo.
//
// It is the only place that rounds a commission. Nothing downstream rounds it again, so
// the parts of a statement always add up to its total, and a partner who checks with a
// spreadsheet or with PostgreSQL's round(numeric) finds the same centavos.
//
// The result is exact for every amount while pct lies between -100 and 100. Beyond that
// it may leave 64 bits, and is then the nearest amount that exists.
func Percent(amount BRL, pct Pct) BRL {
	// One percent is a hundredth, so a percentage as a factor has two decimals more.
	factor := decimal.New(int64(pct), -pctDecimals-2)
	share := decimal.New(int64(amount), -brlDecimals).Mul(factor).Round(brlDecimals)
	return nearest(share.Coefficient())
}

// nearest returns that many centavos, or the nearest amount that exists.
func nearest(centavos *big.Int) BRL {
	switch {
	case centavos.IsInt64():
		return BRL(centavos.Int64())
	case centavos.Sign() < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}
