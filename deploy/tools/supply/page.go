package main

import (
	"fmt"
	"slices"
	"strings"
)

const intro = `# Licences

Every module that is linked into a program of Partilha, built for Linux. ` + "`make generate`" + ` writes this page from what the programs import and from the texts of the licences; do not edit it.

Partilha itself is under the licence that stands in LICENSE. ` + "`" + standard + "`" + ` is Go's standard library, of the Go that builds. Where there are several licences, each holds for some of the module. ` + "`local`" + ` is what ` + "`make run`" + ` runs, ` + "`demo`" + ` what ` + "`make demo-compose`" + ` runs; the others are the images.

| module | version | licence | linked into |
|---|---|---|---|
`

// render is the page of the parts that are not the project's own.
func render(parts []part) string {
	var programs []string // all there are: each links the standard library
	for _, p := range parts {
		if p.path == standard {
			programs = p.programs
		}
	}
	var out strings.Builder
	out.WriteString(intro)
	for _, p := range parts {
		if p.own {
			continue
		}
		into := strings.Join(p.programs, ", ")
		if slices.Equal(p.programs, programs) {
			into = "all"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", p.path, p.version, strings.Join(p.licences, " AND "), into)
	}
	return out.String()
}
