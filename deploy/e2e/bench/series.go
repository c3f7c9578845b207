package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// series are the results of the rounds of one measurement.
type series []float64

// quantile is the smallest value that at least the share q of all do not exceed: 0.5
// for the median. Of nothing it is 0.
func (s series) quantile(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// median is the middle value, or the mean of the two in the middle.
func (s series) median() float64 {
	if n := len(s); n > 0 && n%2 == 0 {
		sorted := slices.Clone(s)
		slices.Sort(sorted)
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return s.quantile(0.5)
}

// spread shows the median and, in brackets, the least and the greatest.
func (s series) spread(format string) string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median(), slices.Min(s), slices.Max(s))
}

// over is the ratio of each value to that of the same round.
func (s series) over(base series) series {
	ratios := make(series, len(s))
	for i := range s {
		ratios[i] = s[i] / base[i]
	}
	return ratios
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
