package sales

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// importTally counts what became of the rows, by kind; under nil are those of no kind.
type importTally map[*importKind]*importCount

type importCount struct{ taken, repeated, refused int }

func newImportTally() importTally {
	tally := importTally{nil: {}}
	for _, kind := range importKinds {
		tally[kind] = &importCount{}
	}
	return tally
}

func (t importTally) count(kind *importKind, fresh bool) {
	if fresh {
		t[kind].taken++
	} else {
		t[kind].repeated++
	}
}

func (t importTally) refuse(kind *importKind) { t[kind].refused++ }

func (t importTally) refused() int { return t.total().refused }

func (t importTally) total() (sum importCount) {
	for _, c := range t {
		sum.taken, sum.repeated, sum.refused = sum.taken+c.taken, sum.repeated+c.repeated, sum.refused+c.refused
	}
	return sum
}

// write writes the table: a line for each kind, and one for rows of no kind if there are any.
func (t importTally) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name string, c importCount) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", name, c.taken, c.repeated, c.refused)
	}
	fmt.Fprintln(table, "TYPE\tTAKEN\tREPEATED\tREFUSED")
	for _, kind := range importKinds {
		line(kind.name, *t[kind])
	}
	if t[nil].refused > 0 {
		line("no type", *t[nil])
	}
	line("all", t.total())
	return table.Flush()
}
