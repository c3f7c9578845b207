package service

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// ours begins the names that nobody sets by chance. No variable has it: somebody who
// sets one expects something that does not happen.
const ours = "PARTILHA_"

// injected are the names by which Kubernetes tells every container of the services
// around it, such as PARTILHA_SALES_PORT_8080_TCP_ADDR of a service partilha-sales.
var injected = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// WarnOfUnknown logs a warning for each variable of the environment that seems to be
// meant for the program and that none of configs, the structs that it reads, has.
func WarnOfUnknown(log *zap.Logger, configs ...any) {
	var known []variable
	for _, config := range configs {
		if config != nil {
			known = append(known, variablesOf(config)...)
		}
	}
	var names []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if meant, unknown := judgeName(name, known); unknown {
			log.Warn("a variable is set that means nothing here", zap.String("variable", name), zap.String("meant", meant))
		}
	}
}

// judgeName tells whether a variable that is set seems to be meant for a program that
// knows these, though it is none of them, and which of them seems to be meant, if any. A name
// without the prefix must be within one edit of a long one, so that what the system, a
// shell or an orchestrator sets is never taken for a slip.
func judgeName(name string, known []variable) (meant string, unknown bool) {
	var accepted []string
	for _, v := range known {
		accepted = append(accepted, v.name)
		switch {
		case v.secret:
			accepted = append(accepted, v.name+"_FILE")
		case name == v.name+"_FILE":
			return v.name, true // only secrets are read from files
		}
	}
	if len(accepted) == 0 || slices.Contains(accepted, name) || injected.MatchString(name) {
		return "", false
	}
	bare, prefixed := strings.CutPrefix(name, ours)
	meant = slices.MinFunc(accepted, func(a, b string) int { return edits(bare, a) - edits(bare, b) })
	away := edits(bare, meant)
	unknown = prefixed || len(meant) >= shortestTypo && away == 1
	if 2*away > len(bare) { // as good as any other
		meant = ""
	}
	return meant, unknown
}

// shortestTypo is the length from which a name is too particular to be another
// program's but for one character.
const shortestTypo = 8

// edits counts how many characters must be inserted, left out, replaced or swapped with
// their neighbour to turn one name into the other.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
