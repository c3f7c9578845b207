package sales

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/web"
)

var (
	groupSize = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "partilha_sales_group_size", Help: "Sales in one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 10)})
	reports = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "partilha_sales_reports_total", Help: "Admitted reports by kind and what became of them; each element of a batch is one."}, []string{"kind", "result"})
)

// The kinds of reports.
const (
	kindSale       = "sale"
	kindRefund     = "refund"
	kindConversion = "conversion"
)

// What becomes of a report.
const (
	resultRecorded = "recorded"
	resultRepeated = "repeated" // it had been recorded before
	resultRefused  = "refused"  // the caller has to change it
	resultFailed   = "failed"   // we could not record it, or do not know whether we did
)

func init() {
	for _, kind := range []string{kindSale, kindRefund, kindConversion} {
		for _, result := range []string{resultRecorded, resultRepeated, resultRefused, resultFailed} {
			reports.WithLabelValues(kind, result) // a first failure shows as a rise from 0
		}
	}
}

// counted is handle, and counts what became of the report.
func counted(kind string, handle func(*web.Call) (web.Answer, error)) func(*web.Call) (web.Answer, error) {
	return func(call *web.Call) (web.Answer, error) {
		answer, err := handle(call)
		countReport(call, kind, answer, err)
		return answer, err
	}
}

// countReport counts nothing where the caller has left before anybody knew.
func countReport(call *web.Call, kind string, answer web.Answer, err error) {
	if call.Left(err) {
		return
	}
	result := resultRepeated
	switch {
	case err != nil:
		result = resultOf(err)
	case answer.Status == 201:
		result = resultRecorded
	}
	reports.WithLabelValues(kind, result).Inc()
}

// resultOf tells whose failure it is that a report was not recorded.
func resultOf(err error) string {
	switch fault.KindOf(err) {
	case fault.Unknown, fault.Unavailable:
		return resultFailed
	default:
		return resultRefused
	}
}
