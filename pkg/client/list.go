package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// pageSize is how many rows are fetched at once, the most that Partilha gives.
const pageSize = "100"

// page is one answer to a list.
type page[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// list yields the rows of every page, each fetched when the one before has been used up.
// An error is the last that it yields. It can be ranged over again, from the start.
func list[T any](ctx context.Context, c *Client, what, path string, f filter) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := url.Values{"limit": {pageSize}}
		maps.Copy(query, f)
		for {
			got, err := send[page[T]](ctx, c, call{what: what, method: http.MethodGet, path: path, query: query, repeatable: true})
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, row := range got.Data {
				if !yield(row, nil) {
					return
				}
			}
			if got.NextCursor == nil {
				return
			}
			query.Set("cursor", *got.NextCursor)
		}
	}
}

// read fetches one resource.
func read[T any](ctx context.Context, c *Client, what, path string) (T, error) {
	return send[T](ctx, c, call{what: what, method: http.MethodGet, path: path, repeatable: true})
}

// filter is what narrows a list. A zero value narrows nothing.
type filter url.Values

func (f filter) text(name, value string) filter {
	if value != "" {
		f[name] = []string{value}
	}
	return f
}

func (f filter) id(name string, value uuid.UUID) filter {
	if value != uuid.Nil {
		f[name] = []string{value.String()}
	}
	return f
}

func (f filter) time(name string, value time.Time) filter {
	if !value.IsZero() {
		f[name] = []string{value.UTC().Format(time.RFC3339Nano)}
	}
	return f
}
