// Package rowfile reads files of rows that somebody else has written: CSV with a header
// row, or NDJSON. A row that cannot be read is named by its line and never spoils the
// others, and no file, however wrong, takes more memory than one row may have.
package rowfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"partilha.dev/pkg/fault"
)

// MaxRow is how many bytes a row may have: as many as the body of a request.
const MaxRow = 64 << 10

// Row is one row of a file. Nothing in it is shared with another row.
type Row struct {
	Line int    // of its beginning, counted from 1
	Text []byte // as it stands in the file, without the line break; cut off if it is too long
	// Members are its named values as JSON, in their order: what an object of NDJSON has,
	// also twice, or the cells of CSV that are not empty. Nil where the text is no such row.
	Members []Member
	// Refusal is why the row cannot be read; nil where Members are there, and where only
	// whoever knows the rules of JSON bodies can say what is wrong with Text.
	Refusal *fault.Error
}

// Member is one named value of a row.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Columns are the names that a header of CSV may have, and whether a column holds
// numbers. A cell of such a column that is no JSON number is passed on as text.
type Columns map[string]bool

// File is a file that can be read any number of times.
type File struct {
	file    *os.File
	size    int64
	csv     bool
	columns Columns
}

// Open opens the file at path, or stdin for "-". What can be read only once is copied
// to a temporary file that vanishes with the process; the end of ctx ends the wait for it.
//
// A name that ends in .csv, .ndjson or .jsonl tells the format; for any other it is
// NDJSON if the first character is a brace. CSV whose header cannot be used is an
// error: none of its rows could be read.
func Open(ctx context.Context, path string, stdin *os.File, columns Columns) (*File, error) {
	file := stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return nil, fmt.Errorf("open file: %w", err)
		}
	}
	file, err := rereadable(ctx, file)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, columns: columns}
	err = f.inspect(path)
	if err == nil {
		_, err = f.Read() // for its header
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// rereadable returns the file itself if it is a regular one, else a copy; it closes
// what it does not return.
func rereadable(ctx context.Context, file *os.File) (*os.File, error) {
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		return file, nil
	}
	defer file.Close()
	if err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("open file: %s is a folder", file.Name())
	}
	copied, err := os.CreateTemp("", "partilha-import-*")
	if err != nil {
		return nil, fmt.Errorf("keep what is read: %w", err)
	}
	if err = os.Remove(copied.Name()); err == nil {
		err = copyUntil(ctx, copied, file)
	}
	if err != nil {
		copied.Close()
		return nil, fmt.Errorf("keep what is read: %w", err)
	}
	return copied, nil
}

// copyUntil copies the file, or as much of it as there is when ctx ends: whoever writes
// it may never end.
func copyUntil(ctx context.Context, to, from *os.File) error {
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(to, from)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *File) inspect(path string) error {
	info, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("inspect file: %w", err)
	}
	f.size = info.Size()
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		f.csv = true
	case ".ndjson", ".jsonl":
	default:
		beginning := make([]byte, 4<<10)
		n, err := f.file.ReadAt(beginning, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read file: %w", err)
		}
		text := bytes.TrimLeft(bytes.TrimPrefix(beginning[:n], byteOrderMark), " \t\r\n")
		f.csv = len(text) > 0 && text[0] != '{'
	}
	return nil
}

// Size is how many bytes the file had when it was opened.
func (f *File) Size() int64 { return f.size }

// Same tells whether the path leads to this very file.
func (f *File) Same(path string) bool {
	a, errA := f.file.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// Close closes the file, whether it was opened here or is standard input.
func (f *File) Close() error { return f.file.Close() }

// windowSize is much larger than a row, so that what is left of a window is seldom moved.
const windowSize = 1 << 20

// Read begins to read the file from its start. Of two readers of a file only the later
// one may be used.
func (f *File) Read() (*Reader, error) {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	r := &Reader{in: bufio.NewReaderSize(f.file, windowSize), line: 1}
	if err := r.skipMark(); err != nil {
		return nil, err
	}
	if f.csv {
		if err := r.readHeader(f.columns); err != nil {
			return nil, err
		}
	}
	return r, nil
}
