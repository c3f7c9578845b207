package sales

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"

	"partilha.dev/pkg/fault"
)

// refusedRows is the file of the rows that were refused: NDJSON, a row a line. It holds
// what the rows hold, and so only its owner may read it.
type refusedRows struct {
	path string
	file *os.File
	out  *bufio.Writer
	kept bool
}

// keepRefused opens the file, emptied, before anything is imported: a refusal must not be
// lost because there is no place for it.
func keepRefused(path string) (*refusedRows, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open file of refused rows: %w", err)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = file.Chmod(0o600) // it may have been there before, and open to others
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("close the file of refused rows to others: %w", err), file.Close())
	}
	return &refusedRows{path: path, file: file, out: bufio.NewWriter(file)}, nil
}

// refusedRow is one line of the file.
type refusedRow struct {
	Line    int            `json:"line"`
	Type    string         `json:"type,omitzero"`
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details []fault.Detail `json:"details,omitzero"`
	Row     string         `json:"row"` // as it stands in the file, cut off if it is too long
}

func (r *refusedRows) add(row *importRow, why *fault.Error) error {
	line := refusedRow{
		Line: row.Line, Code: why.Code, Message: why.Message, Details: why.Details,
		Row: string(bytes.ToValidUTF8(row.Text, []byte("\ufffd"))),
	}
	if row.kind != nil {
		line.Type = row.kind.name
	}
	raw, err := json.Marshal(line)
	if err == nil {
		_, err = r.out.Write(append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep refused row of line %d: %w", row.Line, err)
	}
	r.kept = true
	return nil
}

// close completes the file, and removes it where nothing was refused; kept tells.
func (r *refusedRows) close() (kept bool, err error) {
	info, err := r.file.Stat()
	if err = errors.Join(err, r.out.Flush(), r.file.Close()); err != nil {
		return r.kept, fmt.Errorf("keep refused rows: %w", err)
	}
	if !r.kept && info.Mode().IsRegular() {
		if err := os.Remove(r.path); err != nil {
			return false, fmt.Errorf("remove empty file of refused rows: %w", err)
		}
	}
	return r.kept, nil
}
