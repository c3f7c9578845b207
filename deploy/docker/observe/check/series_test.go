package check

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// labelsOf returns the labels that the results of an expression may have, and every
// series and label in it that there is not.
func labelsOf(expression string, known map[string]labelSet) (labelSet, []string) {
	expr, err := promQL.ParseExpr(expression)
	if err != nil {
		return nil, []string{err.Error()}
	}
	r := reader{known: known}
	return r.labels(expr), r.wrong
}

type reader struct {
	known map[string]labelSet
	wrong []string
}

func (r *reader) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *reader) labels(expr parser.Expr) labelSet {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return r.selected(e)
	case *parser.MatrixSelector:
		return r.labels(e.VectorSelector)
	case *parser.SubqueryExpr:
		return r.labels(e.Expr)
	case *parser.ParenExpr:
		return r.labels(e.Expr)
	case *parser.UnaryExpr:
		return r.labels(e.Expr)
	case *parser.AggregateExpr:
		return r.aggregated(e)
	case *parser.Call:
		return r.called(e)
	case *parser.BinaryExpr:
		return r.combined(e)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return labelSet{}
	default:
		r.complain("%s is of a kind that this check does not read", expr)
		return labelSet{}
	}
}

func (r *reader) selected(e *parser.VectorSelector) labelSet {
	labels, found := r.known[e.Name]
	if !found {
		r.complain("there is no metric %q", e.Name)
		return labelSet{}
	}
	for _, matcher := range e.LabelMatchers {
		if matcher.Name != "__name__" && !labels[matcher.Name] {
			r.complain("%s has no label %s", e.Name, matcher.Name)
		}
	}
	return labels
}

func (r *reader) aggregated(e *parser.AggregateExpr) labelSet {
	inner := r.labels(e.Expr)
	for _, name := range e.Grouping {
		if !inner[name] {
			r.complain("%s has no label %s to be grouped by", e.Expr, name)
		}
	}
	left := labelSet{}
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return inner
	case !e.Without:
		return left.with(e.Grouping...)
	}
	for name := range inner {
		left[name] = true
	}
	for _, name := range e.Grouping {
		delete(left, name)
	}
	return left
}

func (r *reader) called(e *parser.Call) labelSet {
	all := labelSet{}
	for _, arg := range e.Args {
		for name := range r.labels(arg) {
			all[name] = true
		}
	}
	if e.Func.Name == "histogram_quantile" {
		if !all["le"] {
			r.complain("%s has no buckets", e)
		}
		delete(all, "le")
	}
	return all
}

func (r *reader) combined(e *parser.BinaryExpr) labelSet {
	left, right := r.labels(e.LHS), r.labels(e.RHS)
	if e.VectorMatching != nil {
		for _, name := range e.VectorMatching.MatchingLabels {
			if e.VectorMatching.On && (!left[name] || !right[name]) {
				r.complain("the two sides of %s are not both known by %s", e, name)
			}
		}
	}
	if e.Op == parser.LOR {
		for name := range right {
			left = left.with(name)
		}
	}
	if len(left) == 0 {
		return right
	}
	return left
}
