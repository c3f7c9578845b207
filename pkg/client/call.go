package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// call is one thing that is asked of Partilha.
type call struct {
	what         string // what it does, as errors tell it: "record sale"
	method, path string
	query        url.Values
	body         any  // nil: none
	repeatable   bool // whether it does no harm if it is received twice
}

// nothing is the answer to a call that has none but its status.
type nothing struct{}

// Repeat tells whether an answer is that of an earlier call with the same ExternalRef,
// which alone took effect.
type Repeat struct {
	// Idempotent means that an earlier call did it and that this one changed nothing.
	Idempotent bool `json:"idempotent"`

	// Mismatch names the members in which this call and the first one differ, for
	// example "amount_brl". The answer is what the first one asked for, so this is a
	// mistake of the caller's: one ExternalRef for two things. Nil if they agree.
	Mismatch []string `json:"idempotency_mismatch"`
}

// heard takes in what an answer says in its header.
func (r *Repeat) heard(header http.Header) {
	for _, names := range header.Values("Idempotency-Mismatch") {
		for name := range strings.SplitSeq(names, ",") {
			if name = strings.TrimSpace(name); name != "" {
				r.Mismatch = append(r.Mismatch, name)
			}
		}
	}
}

// send makes the call and reads its answer. The body is written once, so that every
// attempt sends the same bytes.
func send[T any](ctx context.Context, c *Client, do call) (answer T, err error) {
	var body []byte
	if do.body != nil {
		if body, err = json.Marshal(do.body); err != nil {
			return answer, fmt.Errorf("%s: write body: %w", do.what, err)
		}
	}
	got, err := c.persist(ctx, do, body)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", do.what, err)
	}
	if _, none := any(answer).(nothing); none {
		return answer, nil
	}
	if err := json.Unmarshal(got.body, &answer); err != nil {
		return answer, fmt.Errorf("%s: read answer: %w", do.what, err)
	}
	if listener, ok := any(&answer).(interface{ heard(http.Header) }); ok {
		listener.heard(got.header)
	}
	return answer, nil
}

// reply is an answer that grants what was asked.
type reply struct {
	header http.Header
	body   []byte
}

const (
	// maxAnswer is how many bytes an answer may have: more than a page of a hundred rows
	// can need. maxRefusal is the same for an error, which lists at most a hundred issues.
	maxAnswer  = 16 << 20
	maxRefusal = 1 << 20
)

// errTooLong is an answer that cannot come from Partilha.
var errTooLong = errors.New("the answer is too long")

// attempt sends the call once. Its error is an *Error if there was an answer.
func (c *Client) attempt(ctx context.Context, do call, body []byte) (reply, error) {
	tooSlow := fmt.Errorf("no answer within %s", c.timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, tooSlow)
	defer cancel()
	request, err := c.request(ctx, do, body)
	if err != nil {
		return reply{}, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, withoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return reply{}, c.refusal(response)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return reply{}, fmt.Errorf("read answer: %w", err)
	case len(raw) > maxAnswer:
		return reply{}, errTooLong
	}
	return reply{response.Header, raw}, nil
}

func (c *Client) request(ctx context.Context, do call, body []byte) (*http.Request, error) {
	address := c.base + do.path
	if len(do.query) > 0 {
		address += "?" + do.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, do.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, withoutURL(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.key())
	request.Header.Set("User-Agent", "partilha-go")
	return request, nil
}

// withoutURL is err without the address that was called: its query may name customers.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
