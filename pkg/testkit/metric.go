package testkit

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is the value that this process would tell a scrape of the counter or gauge of that
// name, or how much the histogram has observed, of the series with these labels, given as
// name, value, name, value. It is -1 where there is no such series.
func Metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i := 0; i+1 < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			same := len(series.GetLabel()) == len(want)
			for _, label := range series.GetLabel() {
				value, known := want[label.GetName()]
				same = same && known && value == label.GetValue()
			}
			if same {
				return series.GetCounter().GetValue() + series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}
