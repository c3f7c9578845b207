package money_test

import (
	stdjson "encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/go-json-experiment/json"

	"partilha.dev/pkg/money"
)

// price has a pointer as well, because an encoder may treat the two differently.
type price struct {
	Amount  money.BRL  `json:"amount_brl"`
	Rate    money.Pct  `json:"commission_pct"`
	Advance *money.BRL `json:"advance_brl"`
}

// encoders are those that events and HTTP bodies pass through.
var encoders = []struct {
	name      string
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}{
	{"encoding/json", stdjson.Marshal, stdjson.Unmarshal},
	{
		"go-json-experiment/json",
		func(v any) ([]byte, error) { return json.Marshal(v) },
		func(b []byte, v any) error { return json.Unmarshal(b, v) },
	},
}

func TestAmountsAndPercentagesAreJSONNumbersInBothEncoders(t *testing.T) {
	advance := money.BRL(-5)
	for _, encoder := range encoders {
		t.Run(encoder.name, func(t *testing.T) {
			text, err := encoder.marshal(price{Amount: 1050, Rate: 287500, Advance: &advance})
			const want = `{"amount_brl":10.50,"commission_pct":28.75,"advance_brl":-0.05}`
			if err != nil || string(text) != want {
				t.Errorf("wrote %s, %v; want %s", text, err, want)
			}
		})
	}
}

func TestWhatWasWrittenIsReadBackExactly(t *testing.T) {
	for _, encoder := range encoders {
		t.Run(encoder.name, func(t *testing.T) {
			for _, units := range []int64{0, 1, -1, 10, 99, 100, 1050, 99999999999, math.MaxInt64, math.MinInt64} {
				amount := money.BRL(units)
				in := price{Amount: amount, Rate: money.Pct(units), Advance: &amount}
				text, err := encoder.marshal(in)
				if err != nil {
					t.Fatal(err)
				}
				var out price
				if err := encoder.unmarshal(text, &out); err != nil {
					t.Fatalf("read %s: %v", text, err)
				}
				if out.Amount != in.Amount || out.Rate != in.Rate || out.Advance == nil || *out.Advance != amount {
					t.Errorf("%s was read as %+v", text, out)
				}
			}
		})
	}
}

func TestWhatIsNoExactNumberIsRefusedByBothEncoders(t *testing.T) {
	for _, encoder := range encoders {
		t.Run(encoder.name, func(t *testing.T) {
			for token, want := range map[string]error{
				`"10.00"`:              money.ErrSyntax,
				`""`:                   money.ErrSyntax,
				`null`:                 money.ErrSyntax,
				`true`:                 money.ErrSyntax,
				`{}`:                   money.ErrSyntax,
				`[1]`:                  money.ErrSyntax,
				`10.55555`:             money.ErrTooManyDecimals,
				`1E1000000000`:         money.ErrOutOfRange,
				`92233720368547758.08`: money.ErrOutOfRange,
			} {
				amount, pct := money.BRL(7), money.Pct(7)
				if err := encoder.unmarshal([]byte(token), &amount); !errors.Is(err, want) || amount != 7 {
					t.Errorf("reading %s as an amount: %s, %v; want %v", token, amount, err, want)
				}
				if err := encoder.unmarshal([]byte(token), &pct); !errors.Is(err, want) || pct != 7 {
					t.Errorf("reading %s as a percentage: %s, %v; want %v", token, pct, err, want)
				}
			}
		})
	}
}
