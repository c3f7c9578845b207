package openapi

import (
	"encoding/json"
	"math/big"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"partilha.dev/pkg/fault"
)

// The library stops at a value whose format is wrong, before it looks at the length or
// pattern; a formatRule runs beside the other checks, so that each is reported.
type formatRule struct{ format *jsonschema.Format }

func takeFormatRule(s *jsonschema.Schema) {
	if s.Format != nil {
		s.Extensions = append(s.Extensions, formatRule{s.Format})
		s.Format = nil
	}
}

// Validate implements [jsonschema.SchemaExt].
func (r formatRule) Validate(ctx *jsonschema.ValidatorContext, v any) {
	if err := r.format.Validate(v); err != nil {
		ctx.AddError(&kind.Format{Want: r.format.Name})
	}
}

// A listRule holds what is asked of the items of an array. The library looks at each of
// them, however many there are and however many are wrong, and what it notes of one costs
// far more than sending it.
type listRule struct {
	most   *int // items; nil: any number
	unique bool
	items  *jsonschema.Schema
}

// takeListRule moves what s asks of items into a rule.
func takeListRule(s *jsonschema.Schema) {
	if s.Items2020 == nil {
		return
	}
	s.Extensions = append(s.Extensions, &listRule{s.MaxItems, s.UniqueItems, s.Items2020})
	s.MaxItems, s.UniqueItems, s.Items2020 = nil, false, nil
}

// listRuleOf returns the rule of a hardened schema, or nil if it asks nothing of items.
func listRuleOf(s *jsonschema.Schema) *listRule {
	for _, extension := range s.Extensions {
		if rule, ok := extension.(*listRule); ok {
			return rule
		}
	}
	return nil
}

// Validate implements [jsonschema.SchemaExt]. Of a list that is too long it reports only
// that, and of any other no more wrong items than an answer could list.
func (r *listRule) Validate(ctx *jsonschema.ValidatorContext, v any) {
	list, ok := v.([]any)
	if !ok {
		return
	}
	if r.most != nil && len(list) > *r.most {
		ctx.AddError(&kind.MaxItems{Got: len(list), Want: *r.most})
		return
	}
	if r.unique {
		first, second, err := ctx.Duplicates(list)
		ctx.AddErr(err)
		if err == nil && first >= 0 {
			ctx.AddError(&kind.UniqueItems{Duplicates: [2]int{first, second}})
		}
	}
	wrong := 0
	for i, item := range list {
		if err := ctx.Validate(r.items, item, []string{strconv.Itoa(i)}); err != nil {
			ctx.AddErr(err)
			if wrong++; wrong > fault.MaxDetails {
				return
			}
		}
	}
}

// A numberRule holds the bounds of a number. The library compares fractions of big
// integers; nearly every number that is really sent fits 64 bits of ten-thousandths,
// and is passed without an allocation. All others take the exact way.
type numberRule struct {
	minimum, maximum, above, below, multipleOf *big.Rat

	quick                  bool // the three that follow stand for all bounds
	least, most, divisible int64
}

// takeNumberRule moves the bounds of s into a rule.
func takeNumberRule(s *jsonschema.Schema) {
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return
	}
	r := &numberRule{
		minimum: s.Minimum, maximum: s.Maximum,
		above: s.ExclusiveMinimum, below: s.ExclusiveMaximum, multipleOf: s.MultipleOf,
		quick: true, least: -quickLimit, most: quickLimit, divisible: 1,
	}
	r.least = max(r.least, r.scaled(r.minimum, r.least, 0))
	r.least = max(r.least, r.scaled(r.above, r.least, +1))
	r.most = min(r.most, r.scaled(r.maximum, r.most, 0))
	r.most = min(r.most, r.scaled(r.below, r.most, -1))
	r.divisible = r.scaled(r.multipleOf, r.divisible, 0)
	s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf = nil, nil, nil, nil, nil
	s.Extensions = append(s.Extensions, r)
}

// scaled returns the bound in ten-thousandths plus shift, or absent if there is none.
// A bound that ten-thousandths cannot express rules out the quick way.
func (r *numberRule) scaled(bound *big.Rat, absent, shift int64) int64 {
	if bound == nil {
		return absent
	}
	n := new(big.Rat).Mul(bound, big.NewRat(quickUnit, 1))
	if !n.IsInt() || !n.Num().IsInt64() {
		r.quick = false
		return absent
	}
	return n.Num().Int64() + shift
}

// Validate implements [jsonschema.SchemaExt].
func (r *numberRule) Validate(ctx *jsonschema.ValidatorContext, v any) {
	token, ok := v.(json.Number)
	if !ok {
		return
	}
	if !r.passesQuickly(string(token)) {
		r.exactly(ctx, string(token))
	}
}

// passesQuickly tells that a number surely keeps all bounds. False means nothing.
func (r *numberRule) passesQuickly(token string) bool {
	if !r.quick {
		return false
	}
	n, ok := tenThousandths(token)
	return ok && n >= r.least && n <= r.most && n%r.divisible == 0
}

// exactly reports each bound that is broken. The token has been bounded, which keeps this cheap.
func (r *numberRule) exactly(ctx *jsonschema.ValidatorContext, token string) {
	n, ok := new(big.Rat).SetString(token)
	if !ok {
		ctx.AddError(&kind.Type{Want: []string{"number"}})
		return
	}
	if r.minimum != nil && n.Cmp(r.minimum) < 0 {
		ctx.AddError(&kind.Minimum{Got: n, Want: r.minimum})
	}
	if r.maximum != nil && n.Cmp(r.maximum) > 0 {
		ctx.AddError(&kind.Maximum{Got: n, Want: r.maximum})
	}
	if r.above != nil && n.Cmp(r.above) <= 0 {
		ctx.AddError(&kind.ExclusiveMinimum{Got: n, Want: r.above})
	}
	if r.below != nil && n.Cmp(r.below) >= 0 {
		ctx.AddError(&kind.ExclusiveMaximum{Got: n, Want: r.below})
	}
	if r.multipleOf != nil && !new(big.Rat).Quo(n, r.multipleOf).IsInt() {
		ctx.AddError(&kind.MultipleOf{Got: n, Want: r.multipleOf})
	}
}

const (
	quickUnit     = 10_000
	quickDecimals = 4
	quickDigits   = 13
	quickLimit    = 100_000_000_000_000_000 // 10^13 in ten-thousandths
)

// tenThousandths is the exact value of a plain decimal token in units of 0.0001. It is
// not ok for an exponent, for more than 4 decimals, and for more than 13 digits before the point.
func tenThousandths(token string) (n int64, ok bool) {
	i, negative := 0, false
	if token != "" && token[0] == '-' {
		i, negative = 1, true
	}
	if len(token)-i > quickDigits+1+quickDecimals {
		return 0, false
	}
	start, decimals := i, -1
	for ; i < len(token); i++ {
		switch c := token[i]; {
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
			if decimals >= 0 {
				decimals++
			}
		case c == '.' && decimals < 0 && i > start:
			decimals = 0
		default:
			return 0, false
		}
	}
	decimals = max(decimals, 0)
	if i == start || decimals > quickDecimals || i-start-decimals > quickDigits+1 {
		return 0, false
	}
	for ; decimals < quickDecimals; decimals++ {
		n *= 10
	}
	if negative {
		n = -n
	}
	return n, true
}
