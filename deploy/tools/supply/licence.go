package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are the licences under which something may be linked into a program that is
// given to others: the SPDX id of each by the classifier's name for it.
var allowed = map[string]string{
	"Apache-2.0":   "Apache-2.0",
	"BSD-0-Clause": "0BSD",
	"BSD-2-Clause": "BSD-2-Clause",
	"BSD-3-Clause": "BSD-3-Clause",
	"ISC":          "ISC",
	"MIT":          "MIT",
	"MPL-2.0":      "MPL-2.0",
	"Unlicense":    "Unlicense",
}

// licenceFile fits the names of files that hold a licence, such as LICENSE.md,
// LICENCE-MIT, COPYING and MIT-LICENSE.txt, and not that of a source file.
var licenceFile = regexp.MustCompile(`(?i)^(.+[-_.])?((un)?licen[cs]e|copying)(-.+|\.md|\.txt|\.rst)?$`)

// reader recognises licences by their texts.
type reader struct {
	texts *classifier.Classifier
	known map[string][]string // SPDX ids by content: most modules share a text
}

func newReader() (*reader, error) {
	texts, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("load the licences' texts: %w", err)
	}
	return &reader{texts, map[string][]string{}}, nil
}

// in returns the SPDX ids of all licences that files in the folders hold, sorted. It
// fails where there is none, where a file holds nothing that is known, and where one of
// the licences is not allowed. What a file says beside a known text is not judged.
func (r *reader) in(folders []string) ([]string, error) {
	var ids []string
	for _, folder := range folders {
		files, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("look for a licence: %w", err)
		}
		for _, file := range files {
			if file.IsDir() || !licenceFile.MatchString(file.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, file.Name()))
			if err != nil {
				return nil, fmt.Errorf("read a licence: %w", err)
			}
			held, err := r.identify(content)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name(), err)
			}
			ids = append(ids, held...)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("no licence in %s", strings.Join(folders, ", "))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// identify returns the SPDX ids of the licences whose texts, or whose headers, are in
// the content, all of which are allowed.
func (r *reader) identify(content []byte) (ids []string, err error) {
	if ids, ok := r.known[string(content)]; ok {
		return ids, nil
	}
	for _, match := range r.texts.Match(content).Matches {
		if match.MatchType != "License" && match.MatchType != "Header" {
			continue
		}
		id, ok := allowed[match.Name]
		if !ok {
			return nil, fmt.Errorf("%s is not a licence that is allowed", match.Name)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("holds no licence that is known")
	}
	r.known[string(content)] = ids
	return ids, nil
}
