package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
)

// MaxBatch is how many sales one call may report.
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

// batchAnswer is what a batch is answered.
type batchAnswer struct {
	Results []SaleResult `json:"results"`
}

// heard lends the errors the request id of the call, of which there is one for all.
func (a *batchAnswer) heard(header http.Header) {
	for _, result := range a.Results {
		if result.Refusal != nil {
			result.Refusal.RequestID = header.Get("X-Request-Id")
		}
	}
}

// RecordSales records up to [MaxBatch] sales in one call, each as [Client.RecordSale]
// would, and answers with a result for each, in their order. Each stands alone: look at
// every Refusal, for a batch of which all sales were refused is no error of the call.
//
// If the call itself fails, any of the sales may have been recorded; report all of them
// again. Nothing is sent if there are none or too many, or if one has no ExternalRef.
func (c *Client) RecordSales(ctx context.Context, reports []SaleReport) ([]SaleResult, error) {
	const what = "record sales"
	if len(reports) == 0 || len(reports) > MaxBatch {
		return nil, fmt.Errorf("%s: a batch has 1 to %d sales, not %d; nothing was sent", what, MaxBatch, len(reports))
	}
	for i, report := range reports {
		if report.ExternalRef == "" {
			return nil, fmt.Errorf("%s: sale %d: %w", what, i, errNoRef)
		}
	}
	body := struct {
		Sales []SaleReport `json:"sales"`
	}{reports}
	answer, err := send[batchAnswer](ctx, c, call{what: what, method: http.MethodPost, path: salesPath + "/batch", body: body, repeatable: true})
	if err != nil {
		return nil, err
	}
	if len(answer.Results) != len(reports) {
		return nil, fmt.Errorf("%s: %d sales were answered by %d results", what, len(reports), len(answer.Results))
	}
	return answer.Results, nil
}
