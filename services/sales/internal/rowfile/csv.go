package rowfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"partilha.dev/pkg/fault"
)

// table reads the rows of CSV: RFC 4180, with commas or semicolons.
type table struct {
	names   []string
	numbers []bool
	comma   rune
	text    bytes.Reader
	cells   *csv.Reader
}

// readHeader reads the names of the columns. Semicolons part the columns where the
// header has one: no name does.
func (r *Reader) readHeader(columns Columns) error {
	t := &table{comma: ','}
	r.table = t
	t.reset()
	window, err := r.in.Peek(MaxRow)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read header: %w", err)
	}
	end, length := lineEnd(window)
	line := bytes.TrimSuffix(window[:end], []byte("\r"))
	if bytes.IndexByte(line, ';') >= 0 {
		t.comma = ';'
		t.reset()
	}
	if t.names, err = t.split(line); err != nil || !utf8.Valid(line) {
		return errors.New("line 1: the header cannot be read; it is a line of column names, such as type,name,referral_code")
	}
	for i, name := range t.names {
		number, known := columns[name]
		switch {
		case !known:
			return fmt.Errorf("line 1: %.100q is not the name of a column", name)
		case slices.Contains(t.names[:i], name):
			return fmt.Errorf("line 1: there are two columns %s", name)
		}
		t.numbers = append(t.numbers, number)
	}
	if length == 0 {
		length = end
	}
	r.line++
	return r.skip(length, false)
}

func (t *table) reset() {
	t.cells = csv.NewReader(&t.text)
	t.cells.Comma, t.cells.FieldsPerRecord, t.cells.ReuseRecord = t.comma, -1, false
}

// split returns the cells of one row.
func (t *table) split(text []byte) ([]string, error) {
	t.text.Reset(text)
	cells, err := t.cells.Read()
	if err == nil {
		_, err = t.cells.Read() // a row is all of its text
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		err = csv.ErrQuote
	}
	t.reset() // what it has not read would stand before the next row
	return nil, err
}

// members are the cells that are not empty, by the names of their columns.
func (t *table) members(text []byte) ([]Member, *fault.Error) {
	if !utf8.Valid(text) {
		return nil, syntax("is not valid UTF-8")
	}
	cells, err := t.split(text)
	if err != nil {
		return nil, syntax("has a quotation mark where none may be; a cell with one is quoted, and the mark doubled")
	}
	if len(cells) != len(t.names) {
		return nil, syntax("has %d columns, the header %d", len(cells), len(t.names))
	}
	found := make([]Member, 0, len(cells))
	for i, cell := range cells {
		if cell != "" {
			found = append(found, Member{t.names[i], jsonValue(cell, t.numbers[i])})
		}
	}
	return found, nil
}

// jsonValue is a cell as JSON.
func jsonValue(cell string, number bool) jsontext.Value {
	if value := jsontext.Value(cell); number && value.Kind() == '0' && value.IsValid() {
		return value
	}
	value, _ := jsontext.AppendQuote(nil, cell) // a row is valid UTF-8
	return value
}
