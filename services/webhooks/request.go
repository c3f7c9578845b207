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
	url    string        // of the endpoint as it is now
	sealed sealedSecrets // of the endpoint as it is now
	// What the last attempt was sent to and signed with; nil without one, and where its worker
	// could not write it down.
	sentTo, signature *string
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
		return viewRequest(compose(url, r.event, r.body, readSignatures(*r.signature)))
	case d.Status == stateSkipped || r.sealed.secret == nil:
		return nil, nil
	}
	signed, err := s.sealer.sign(d.EndpointID, r.sealed, d.EventID, s.deps.Now(), r.body)
	if err != nil {
		return nil, err
	}
	return viewRequest(compose(url, r.event, r.body, signed))
}

// compose makes the request that tells body to url.
func compose(url, event string, body []byte, signed signatures) request {
	return request{URL: url, Event: event, Signature: signed.value, Extra: signed.extra, Body: body}
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
