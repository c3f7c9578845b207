package main

import "testing"

func TestMedianQuantilesAndRatios(t *testing.T) {
	for _, c := range []struct {
		s    series
		q    float64
		want float64
	}{
		{nil, 0.5, 0},
		{series{3, 1, 2}, 0.5, 2},
		{series{3, 1, 2}, 1, 3},
		{series{5, 4, 3, 2, 1}, 0.99, 5},
		{series{5, 4, 3, 2, 1}, 0.2, 1},
	} {
		if got := c.s.quantile(c.q); got != c.want {
			t.Errorf("quantile %v of %v is %v, want %v", c.q, c.s, got, c.want)
		}
	}
	if got := (series{1, 10, 2, 4}).median(); got != 3 {
		t.Errorf("the median of four is %v, want 3", got)
	}
	// A ratio is taken round by round, not of the medians.
	if got, want := (series{1, 8, 3}).over(series{2, 2, 2}).spread("%.1f"), "1.5 (0.5–4.0)"; got != want {
		t.Errorf("the spread is %s, want %s", got, want)
	}
}
