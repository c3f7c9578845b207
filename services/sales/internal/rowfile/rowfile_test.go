package rowfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

var columns = Columns{"type": false, "name": false, "amount": true}

// written makes a file and opens it.
func written(t testing.TB, name, content string) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), path, nil, columns)
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, err
}

// read returns the rows as line, names and values, or line and "refused".
func read(t testing.TB, f *File) (rows []string) {
	t.Helper()
	r, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			if r.Offset() != f.Size() {
				t.Errorf("at the end %d of %d bytes are read", r.Offset(), f.Size())
			}
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(row.Line)
		for _, m := range row.Members {
			text += " " + m.Name + "=" + string(m.Value)
		}
		if row.Refusal != nil {
			text += " refused"
		} else if row.Members == nil {
			text += " no object"
		}
		rows = append(rows, text)
	}
}

func TestRowsAreReadWithTheLinesOnWhichTheyBegin(t *testing.T) {
	long := strings.Repeat("x", MaxRow)
	for name, row := range map[string]struct {
		file, content string
		want          []string
	}{
		"CSV":                           {"a.csv", "type,name,amount\nsale,Ana,10.50\n", []string{`2 type="sale" name="Ana" amount=10.50`}},
		"CSV with semicolons":           {"a.csv", "type;amount\r\nsale;1,5\r\n;2\r\n", []string{`2 type="sale" amount="1,5"`, `3 amount=2`}},
		"CSV that is told by itself":    {"a", "name\nAna", []string{`2 name="Ana"`}},
		"quoted cells":                  {"a.csv", "name,amount\n\"a,\"\"b\"\"\r\nc\",1\n\n  \nd,2\n", []string{`2 name="a,\"b\"\nc" amount=1`, `6 name="d" amount=2`}},
		"cells that are no numbers":     {"a.csv", "amount\nten\n1e5\n01\n0x1\nNaN\n-1\n", []string{`2 amount="ten"`, `3 amount=1e5`, `4 amount="01"`, `5 amount="0x1"`, `6 amount="NaN"`, `7 amount=-1`}},
		"cells that look like JSON":     {"a.csv", "name\ntrue\nnull\n{}\n\\\n", []string{`2 name="true"`, `3 name="null"`, `4 name="{}"`, `5 name="\\"`}},
		"open quotation marks":          {"a.csv", "name,amount\n\"a,1\nb,2\n\"c,3\nd,4\n", []string{"2 refused", `3 name="b" amount=2`, "4 refused", `5 name="d" amount=4`}},
		"a row that is too long":        {"a.csv", "name\n" + long + "x\nb\n" + long + "\n" + strings.Repeat(long, 40) + "\nc\n" + long + "xxx", []string{"2 refused", `3 name="b"`, `4 name="` + long + `"`, "5 refused", `6 name="c"`, "7 refused"}},
		"NDJSON":                        {"a.ndjson", `{"a":1,"b":[{"c":null}]}` + "\n\n" + `{"a":1,"a":2}`, []string{`1 a=1 b=[{"c":null}]`, `3 a=1 a=2`}},
		"JSON lines by another name":    {"a.JSONL", "{}\r\n", []string{"1"}},
		"NDJSON that is told by itself": {"a", " \n{}\n", []string{"2"}},
		"what is no object":             {"a.ndjson", "[]\n1\n{\n{} {}\n{\"a\"}\n{\"a\":}\nx\n{\"b\":1}\n", []string{"1 no object", "2 no object", "3 no object", "4 no object", "5 no object", "6 no object", "7 no object", "8 b=1"}},
		"what is no text":               {"a.ndjson", "{\"a\":\"\xff\"}\n\xef\xbb\xbf{}\n{}\n", []string{"1 refused", "2 refused", "3"}},
		"CSV of a spreadsheet":          {"a.csv", "\xef\xbb\xbfname\nAna\n", []string{`2 name="Ana"`}},
		"NDJSON after a mark":           {"a", "\xef\xbb\xbf{\"a\":1}\n", []string{"1 a=1"}},
		"nothing but a mark":            {"a", "\xef\xbb\xbf", nil},
		"nothing":                       {"a", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := written(t, row.file, row.content)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // as often as one likes
				if got := read(t, f); !slices.Equal(got, row.want) {
					t.Errorf("read %.2000q, want %.2000q", got, row.want)
				}
			}
		})
	}
}

func TestTheEndOfAWindowIsNotTheEndOfARow(t *testing.T) {
	const rows = 3 * windowSize / 100
	var content strings.Builder
	content.WriteString("name\n")
	for n := range rows {
		fmt.Fprintf(&content, "\"%0*d\n%d\"\n", 90, n, n)
	}
	f, err := written(t, "a.csv", content.String())
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, f)
	if len(got) != rows {
		t.Fatalf("%d rows, want %d", len(got), rows)
	}
	for n, row := range got {
		if want := fmt.Sprintf(`%d name="%0*d\n%d"`, 2+2*n, 90, n, n); row != want {
			t.Fatalf("row %d is %s, want %s", n, row, want)
		}
	}
}

func TestAPipeIsCopiedAndTheCopyLeavesNoTrace(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		io.WriteString(out, "name\nAna\n")
		out.Close()
	}()
	f, err := Open(t.Context(), "-", in, columns)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		if got, want := read(t, f), []string{`2 name="Ana"`}; !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("there are %v %v", left, err)
	}
}

func TestAPipeThatNeverEndsIsLeftWhenTheContextEnds(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error)
	go func() {
		_, err := Open(ctx, "-", in, columns)
		opened <- err
	}()
	cancel()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Errorf("opened: %v", err)
	}
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{"name,type\na,b\n", "name\n\"a\nb\n", "{\"a\":1}\n[", "\xef\xbb\xbf{}\n", "name;type\n\"\";\"\"\"\"\r\n\"", "{\n}\x00\xff"} {
		f.Add("a.csv", seed)
		f.Add("a.ndjson", seed)
		f.Add("a", seed)
	}
	f.Fuzz(func(t *testing.T, name, content string) {
		if name != "a.csv" && name != "a.ndjson" {
			name = "a"
		}
		file, err := written(t, name, content)
		if err != nil {
			return
		}
		r, err := file.Read()
		if err != nil {
			t.Fatal(err)
		}
		line := 0
		for {
			row, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if row.Line <= line || len(row.Text) > MaxRow+1 || row.Refusal != nil && row.Members != nil {
				t.Fatalf("after line %d: %+v", line, row)
			}
			line = row.Line
			for _, m := range row.Members {
				if !m.Value.IsValid(jsontext.AllowDuplicateNames(true)) {
					t.Fatalf("line %d: %s is no JSON", line, m.Value)
				}
			}
		}
		if r.Offset() != file.Size() || line > strings.Count(content, "\n")+1 {
			t.Fatalf("read %d of %d bytes, to line %d", r.Offset(), file.Size(), line)
		}
	})
}
