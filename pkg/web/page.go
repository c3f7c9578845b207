package web

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
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

	pattern string
}

// Page reads limit and cursor from the query.
func (c *Call) Page() (Page, error) {
	page := Page{Limit: defaultLimit, pattern: c.endpoint.route.Pattern}
	if text := c.queryValue("limit"); text != nil {
		n, err := strconv.Atoi(*text)
		if err != nil || n < 1 || n > maxLimit {
			return page, fault.InvalidParameter("limit", "must be a whole number from 1 to 100")
		}
		page.Limit = n
	}
	if text := c.queryValue("cursor"); text != nil {
		after, ok := page.open(*text)
		if !ok {
			return page, fault.InvalidParameter("cursor", "must be the next_cursor of an earlier answer of this list")
		}
		page.After = &after
	}
	return page, nil
}

// A cursor is the id of the last row and a checksum over it and the list that it is
// of, so that a damaged or foreign one is noticed.
func (p Page) seal(id uuid.UUID) string {
	raw := binary.BigEndian.AppendUint32(id[:], p.sum(id))
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (p Page) open(cursor string) (uuid.UUID, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) != 20 {
		return uuid.Nil, false
	}
	id := uuid.UUID(raw[:16])
	return id, p.seal(id) == cursor // in this one spelling
}

func (p Page) sum(id uuid.UUID) uint32 {
	return crc32.ChecksumIEEE(append([]byte(p.pattern), id[:]...))
}

// List is one page as it is answered.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// Cut makes the answer from rows, of which the query fetched one more than the page
// holds if there are more; id tells where a row stands.
func Cut[T any](page Page, rows []T, id func(T) uuid.UUID) Answer {
	list := List[T]{Data: rows}
	if rows == nil {
		list.Data = []T{}
	}
	if len(rows) > page.Limit {
		list.Data = rows[:page.Limit]
		cursor := page.seal(id(list.Data[page.Limit-1]))
		list.NextCursor = &cursor
	}
	return Answer{Status: 200, Body: list}
}
