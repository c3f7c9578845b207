package webhooks

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// requestView is a request as the API shows it, with every header that goes out.
type requestView struct {
	Method  string  `json:"method"`
	URL     string  `json:"url"`
	Headers headers `json:"headers"`
	Body    string  `json:"body"`
}

// headers are a JSON object of names and values, in this order.
type headers [][2]string

// MarshalJSONTo writes the object.
func (h headers) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, header := range h {
		for _, text := range header {
			if err := enc.WriteToken(jsontext.String(text)); err != nil {
				return err
			}
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// requestRow is what a delivery's request is made of.
type requestRow struct {
	event  string
	body   []byte
	url    string  // of the endpoint as it is now
	sealed []byte  // its secret; nil once it is deleted
	sentTo *string // the URL of the last attempt; nil without one
	// signature is that of the last attempt, which the worker of an unknown delivery
	// could not write down.
	signature *string
}

// requestOf returns the request that was sent for d, or would be sent now. It returns
// nil for what is never sent, and where nothing is left to sign with.
func (s *Service) requestOf(d delivery, r requestRow) (*requestView, error) {
	url := r.url
	if r.sentTo != nil {
		url = *r.sentTo
	}
	switch {
	case r.signature != nil:
		return viewRequest(request{URL: url, Event: r.event, Signature: *r.signature, Body: r.body})
	case d.Status == stateSkipped || r.sealed == nil:
		return nil, nil
	}
	secret, err := s.sealer.open(d.EndpointID, r.sealed)
	if err != nil {
		return nil, err
	}
	return viewRequest(request{URL: url, Event: r.event, Signature: sign(secret, r.body), Body: r.body})
}

func viewRequest(r request) (*requestView, error) {
	post, err := http.NewRequest(http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("compose request: %w", err)
	}
	view := &requestView{Method: post.Method, URL: r.URL, Body: string(r.Body), Headers: headers{
		{"Host", post.Host}, {"Content-Length", strconv.Itoa(len(r.Body))},
	}}
	sent := r.header()
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		view.Headers = append(view.Headers, [2]string{name, sent.Get(name)})
	}
	return view, nil
}
