package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
)

// MaxBatch is how many sales one call may report, and how many settlements.
const MaxBatch = 1000

// SaleResult is what became of one sale of a batch: either a receipt, or a refusal.
type SaleResult struct {
	SaleReceipt

	// Refusal is why the sale is not recorded; nil if it is. If it is temporary the sale
	// may have been recorded all the same, and is to be reported again.
	Refusal *Error
}

// UnmarshalJSON reads one element of the answer to a batch.
func (r *SaleResult) UnmarshalJSON(raw []byte) error {
	var refused Error
	if err := json.Unmarshal(raw, &refused); err != nil {
		return err
	}
	switch refused.Status {
	case http.StatusOK, http.StatusCreated:
		return json.Unmarshal(raw, &r.SaleReceipt)
	default:
		r.Refusal = &refused
		return nil
	}
}

func (r SaleResult) refused() *Error { return r.Refusal }

// RecordSales records up to [MaxBatch] sales in one call, each as [Client.RecordSale]
// would, and answers with a result for each, in their order. Each stands alone: look at
// every Refusal, for a batch of which all sales were refused is no error of the call.
//
// If the call itself fails, any of the sales may have been recorded; report all of them
// again. Nothing is sent if there are none or too many, or if one has no ExternalRef.
func (c *Client) RecordSales(ctx context.Context, reports []SaleReport) ([]SaleResult, error) {
	const what = "record sales"
	if err := checkBatch(what, len(reports)); err != nil {
		return nil, err
	}
	for i, report := range reports {
		if report.ExternalRef == "" {
			return nil, fmt.Errorf("%s: sale %d: %w", what, i, errNoRef)
		}
	}
	body := struct {
		Sales []SaleReport `json:"sales"`
	}{reports}
	return sendBatch[SaleResult](ctx, c, call{what: what, path: salesPath + "/batch", body: body}, len(reports))
}

// batchAnswer is what a batch is answered.
type batchAnswer[T interface{ refused() *Error }] struct {
	Results []T `json:"results"`
}

// heard lends the errors the request id of the call, of which there is one for all.
func (a *batchAnswer[T]) heard(header http.Header) {
	for _, result := range a.Results {
		if refused := result.refused(); refused != nil {
			refused.RequestID = header.Get("X-Request-Id")
		}
	}
}

func checkBatch(what string, n int) error {
	if n == 0 || n > MaxBatch {
		return fmt.Errorf("%s: a batch has 1 to %d elements, not %d; nothing was sent", what, MaxBatch, n)
	}
	return nil
}

// sendBatch posts a batch of n elements, whose results must be as many.
func sendBatch[T interface{ refused() *Error }](ctx context.Context, c *Client, do call, n int) ([]T, error) {
	do.method, do.repeatable = http.MethodPost, true
	answer, err := send[batchAnswer[T]](ctx, c, do)
	if err != nil {
		return nil, err
	}
	if len(answer.Results) != n {
		return nil, fmt.Errorf("%s: %d elements were answered by %d results", do.what, n, len(answer.Results))
	}
	return answer.Results, nil
}
