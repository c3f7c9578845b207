package web

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
)

// A batch is a call whose body lists what is to be done. Each element is judged, done
// and answered as if it were a call of its own; only the key, the limits and whether
// the body is such a list at all are looked at for the whole.

// maxBatchBody is how many bytes the body of a batch may have.
const maxBatchBody = 4 << 20

// Element is one element of a batch as it was sent.
type Element struct {
	raw  []byte
	list *openapi.List
}

// Elements are what the body of a batch lists, in its order. Its error refuses the whole
// call: the body is no such list, or the key may not ask for so much now.
func (c *Call) Elements() ([]Element, error) {
	found, err := c.endpoint.list.Elements(c.body)
	if err != nil {
		return nil, err
	}
	elements := make([]Element, len(found))
	for i, raw := range found {
		elements[i] = Element{raw, c.endpoint.list}
	}
	return elements, c.endpoint.api.Limiter.charge(c.Key.ID, 1, len(elements)-1, c.header)
}

// Decode does with the element what [Call.Decode] does with the body of a call of its
// own, which may not be larger either.
func (e Element) Decode(into any) error {
	if len(e.raw) > maxBody {
		return tooLarge("an element", maxBody)
	}
	return e.list.Decode(e.raw, into)
}

// result is what one element of a batch is answered: the status and the members that
// it would have been answered as a call of its own.
type result struct {
	Status  int            `json:"status"`
	Members jsontext.Value `json:",embed"`
}

// maxElementDetails is how many issues the answer lists of one element, so that a batch
// of nothing but mistakes has an answer about as long as that of one that is accepted.
const maxElementDetails = 10

// refusal is an error within the answer to a batch, which has one request id for all.
type refusal struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details []fault.Detail `json:"details,omitzero"`
}

// Results is the answer to a batch of n elements: what answer says of each of them, in
// their order. An answer's body is an object without the member status; its headers are
// not shown. What failed on our side is logged here, once for the batch.
func (c *Call) Results(n int, answer func(i int) (Answer, error)) (Answer, error) {
	results := make([]result, n)
	failed := 0
	var failure error
	for i := range results {
		a, err := answer(i)
		if err != nil {
			f, status := explain(err)
			f = f.First(maxElementDetails)
			if a = (Answer{Status: status, Body: refusal{f.Code, f.Message, f.Details}}); status >= 500 && !c.Left(err) {
				failed++
				failure = cmp.Or(failure, err)
			}
		}
		raw, err := json.Marshal(a.Body, jsontext.AllowInvalidUTF8(err != nil))
		if err != nil {
			return Answer{}, fmt.Errorf("write the result of element %d: %w", i, err)
		}
		results[i] = result{a.Status, raw}
	}
	if failed > 0 {
		c.endpoint.api.Log.Error("elements of a batch failed", zap.String("path", c.URL.Path), zap.Int("elements", failed),
			zap.String("request_id", c.header.Get(requestIDHeader)), zap.Error(failure))
	}
	return Answer{Status: http.StatusOK, Body: map[string][]result{"results": results}}, nil
}
