package rowfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"partilha.dev/pkg/fault"
)

// Reader reads the rows of a file one after the other.
type Reader struct {
	in     *bufio.Reader
	line   int // of what is read next
	offset int64
	table  *table // nil for NDJSON
}

// Offset is how many bytes of the file have been read.
func (r *Reader) Offset() int64 { return r.offset }

// Next returns the next row that is not blank, or io.EOF after the last one. Any other
// error is one of reading the file itself.
func (r *Reader) Next() (Row, error) {
	for {
		// A row of the largest size has its line break in the window.
		window, err := r.in.Peek(MaxRow + len("\r\n"))
		if err != nil && !errors.Is(err, io.EOF) {
			return Row{}, fmt.Errorf("read line %d: %w", r.line, err)
		}
		if len(window) == 0 {
			return Row{}, io.EOF
		}
		row, length := r.take(window, err != nil)
		row.Line = r.line
		row.Text = slices.Clone(row.Text)
		r.line += bytes.Count(window[:length], []byte("\n"))
		if err := r.skip(length, row.Refusal == tooLong); err != nil {
			return Row{}, fmt.Errorf("read line %d: %w", r.line, err)
		}
		if row.Refusal != nil || len(bytes.TrimSpace(row.Text)) > 0 {
			return row, nil
		}
	}
}

var (
	byteOrderMark = []byte("\xef\xbb\xbf")

	tooLong = syntax("is longer than %d bytes", MaxRow)
)

// skipMark leaves a byte-order mark behind, with which some spreadsheets begin their files.
func (r *Reader) skipMark() error {
	beginning, err := r.in.Peek(len(byteOrderMark))
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read file: %w", err)
	}
	if !bytes.Equal(beginning, byteOrderMark) {
		return nil
	}
	return r.skip(len(byteOrderMark), false)
}

// syntax is why the text of a row cannot be read; the words continue "the row".
func syntax(format string, args ...any) *fault.Error {
	message := "the row " + fmt.Sprintf(format, args...)
	f := fault.InvalidBody(fault.Detail{Code: "syntax", Message: message})
	f.Message = message
	return f
}

// take reads the row at the beginning of the window, and how many bytes of it are the
// row's, line break included. Where a row of several lines cannot be read, only the
// first line is refused, and the next row begins below it: a stray quotation mark must
// not take other rows with it.
func (r *Reader) take(window []byte, last bool) (Row, int) {
	end, length := lineEnd(window)
	if length == 0 && last {
		end, length = len(window), len(window)
	}
	line := bytes.TrimSuffix(window[:end], []byte("\r"))
	switch {
	case length == 0 || len(line) > MaxRow:
		return Row{Text: window[:min(MaxRow, len(window))], Refusal: tooLong}, length
	case bytes.HasPrefix(line, byteOrderMark):
		return Row{Text: line, Refusal: syntax("starts with a byte-order mark, which may only begin a file")}, length
	case r.table == nil:
		if !utf8.Valid(line) {
			return Row{Text: line, Refusal: syntax("is not valid UTF-8")}, length
		}
		return Row{Text: line, Members: members(line)}, length
	case len(bytes.TrimSpace(line)) == 0:
		return Row{Text: line}, length
	}
	end, whole := quotedEnd(window, last)
	if whole == 0 {
		return Row{Text: line, Refusal: syntax("has a quotation mark that is not closed within %d bytes", MaxRow)}, length
	}
	text := bytes.TrimSuffix(window[:end], []byte("\r"))
	found, refusal := r.table.members(text)
	if refusal != nil {
		return Row{Text: line, Refusal: refusal}, length
	}
	return Row{Text: text, Members: found}, whole
}

// skip leaves the row behind, and all of its line where that does not fit the window.
func (r *Reader) skip(length int, long bool) error {
	n, err := r.in.Discard(length)
	r.offset += int64(n)
	for ended := !long || length > 0; !ended && err == nil; {
		var part []byte
		part, err = r.in.ReadSlice('\n')
		r.offset += int64(len(part))
		ended = err == nil
		switch {
		case ended:
			r.line++
		case errors.Is(err, bufio.ErrBufferFull):
			err = nil
		case errors.Is(err, io.EOF):
			return nil
		}
	}
	return err
}

// lineEnd is where the first line ends, without and with its line break; 0 for the
// latter where it goes on.
func lineEnd(window []byte) (end, length int) {
	if end := bytes.IndexByte(window, '\n'); end >= 0 {
		return end, end + 1
	}
	return len(window), 0
}

// quotedEnd is lineEnd of the first line that ends outside quotation marks.
func quotedEnd(window []byte, last bool) (end, length int) {
	open := false
	for i, b := range window {
		switch {
		case b == '"':
			open = !open
		case b == '\n' && !open:
			return i, i + 1
		}
	}
	if last && !open {
		return len(window), len(window)
	}
	return len(window), 0
}
