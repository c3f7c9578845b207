package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
)

var licences = sync.OnceValues(newReader) // loads for seconds

// text is a licence as the classifier's own collection has it.
func text(t *testing.T, name string) string {
	t.Helper()
	content, err := assets.ReadLicenseFile("License/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestALicenceIsKnownByItsText(t *testing.T) {
	read, err := licences()
	if err != nil {
		t.Fatal(err)
	}
	mit, apache := text(t, "MIT/pristine.txt"), text(t, "Apache-2.0/pristine.txt")
	for name, row := range map[string]struct {
		files map[string]string
		want  string // the ids, or what the error says
	}{
		"one text":                               {map[string]string{"LICENSE": mit}, "MIT"},
		"a file with an ending":                  {map[string]string{"LICENCE.md": apache}, "Apache-2.0"},
		"two files":                              {map[string]string{"LICENSE-MIT": mit, "LICENSE-APACHE": apache}, "Apache-2.0 MIT"},
		"two texts in one file":                  {map[string]string{"LICENSE": mit + "\n\n" + apache}, "Apache-2.0 MIT"},
		"the same twice":                         {map[string]string{"LICENSE": mit, "COPYING": mit}, "MIT"},
		"a name that SPDX writes in its own way": {map[string]string{"LICENSE": text(t, "BSD-0-Clause/license.txt")}, "0BSD"},
		"no file":                                {map[string]string{"README": mit}, "no licence in"},
		"a source file":                          {map[string]string{"license.go": mit}, "no licence in"},
		"a text that nobody knows":               {map[string]string{"LICENSE": "Ask us first."}, "LICENSE: holds no licence that is known"},
		"a text that is not allowed":             {map[string]string{"LICENSE": text(t, "AGPL-3.0/license.txt")}, "LICENSE: AGPL-3.0 is not a licence that is allowed"},
		"one of two texts that is not allowed":   {map[string]string{"LICENSE": apache + "\n\n" + text(t, "Commons-Clause/license.txt")}, "LICENSE: Commons-Clause is not a licence that is allowed"},
		"one of two files that nobody knows":     {map[string]string{"LICENSE": mit, "LICENSE-DATA": "Ask us first."}, "LICENSE-DATA: holds no licence that is known"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, content := range row.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			ids, err := read.in([]string{folder})
			switch {
			case err != nil && !strings.HasPrefix(err.Error(), row.want):
				t.Errorf("%v, want %s", err, row.want)
			case err == nil && !slices.Equal(ids, strings.Fields(row.want)):
				t.Errorf("%v, want %s", ids, row.want)
			}
		})
	}
}
