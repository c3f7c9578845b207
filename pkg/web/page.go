package web

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
)

const (
	defaultLimit = 25
	maxLimit     = 100
)

// Page is the part of a list that a caller asks for: newest first, after a place
// that an earlier answer named.
type Page struct {
	Limit int
	After *uuid.UUID // the last id of the page before; nil for the first page
	Place []byte     // where the page before ended; nil for the first page

	pattern string
}

// FirstPage is the first page of another route's list, such as a stream begins with.
func FirstPage(pattern string, limit int) Page { return Page{Limit: limit, pattern: pattern} }

// Page reads limit and cursor from the query.
func (c *Call) Page() (Page, error) {
	page, err := c.PageOf(len(uuid.UUID{}))
	if page.Place != nil {
		page.After = new(uuid.UUID(page.Place))
	}
	return page, err
}

// PageOf is Page for a list that does not stand in the order of its rows' ids. Where one
// of its pages ended, [CutAt] says in so many bytes.
func (c *Call) PageOf(size int) (Page, error) {
	page := Page{Limit: defaultLimit, pattern: c.endpoint.route.Pattern}
	if text := c.queryValue("limit"); text != nil {
		n, err := strconv.Atoi(*text)
		if err != nil || n < 1 || n > maxLimit {
			return page, fault.InvalidParameter("limit", "must be a whole number from 1 to 100")
		}
		page.Limit = n
	}
	if text := c.queryValue("cursor"); text != nil {
		place, ok := page.open(*text, size)
		if !ok {
			return page, fault.InvalidParameter("cursor", "must be the next_cursor of an earlier answer of this list")
		}
		page.Place = place
	}
	return page, nil
}

// A cursor is the place of the last row and a checksum over it and the list that it is
// of, so that a damaged or foreign one is noticed.
func (p Page) seal(place []byte) string {
	raw := binary.BigEndian.AppendUint32(slices.Clone(place), p.sum(place))
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (p Page) open(cursor string, size int) ([]byte, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) != size+crc32.Size {
		return nil, false
	}
	place := raw[:size:size]
	return place, p.seal(place) == cursor // in this one spelling
}

func (p Page) sum(place []byte) uint32 {
	return crc32.ChecksumIEEE(append([]byte(p.pattern), place...))
}

// List is one page as it is answered.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// Cut makes the answer from rows, of which the query fetched one more than the page
// holds if there are more; id tells where a row stands.
func Cut[T any](page Page, rows []T, id func(T) uuid.UUID) Answer {
	return CutAt(page, rows, func(row T) []byte {
		at := id(row)
		return at[:]
	})
}

// CutAt is Cut for a list of [Call.PageOf]; place tells where a row stands.
func CutAt[T any](page Page, rows []T, place func(T) []byte) Answer {
	list := List[T]{Data: rows}
	if rows == nil {
		list.Data = []T{}
	}
	if len(rows) > page.Limit {
		list.Data = rows[:page.Limit]
		cursor := page.seal(place(list.Data[page.Limit-1]))
		list.NextCursor = &cursor
	}
	return Answer{Status: 200, Body: list}
}
