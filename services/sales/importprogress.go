package sales

import (
	"fmt"
	"io"
	"time"
)

// importProgress tells a person how far the import is: on a terminal a line that
// changes, elsewhere a new line now and then.
type importProgress struct {
	out      io.Writer
	terminal bool
	size     int64 // of the file, in bytes
	last     time.Time
}

const (
	progressOnTerminal = 200 * time.Millisecond
	progressElsewhere  = 10 * time.Second
)

func (p *importProgress) show(pass int, offset int64, tally importTally) {
	every := progressElsewhere
	if p.terminal {
		every = progressOnTerminal
	}
	now := time.Now()
	if p.last.IsZero() {
		p.last = now
	}
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	sum := tally.total()
	line := fmt.Sprintf("pass %d of %d, %d %%: %d taken, %d repeated, %d refused",
		pass, passes, 100*offset/max(p.size, 1), sum.taken, sum.repeated, sum.refused)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(p.out, line)
	}
}

// clear leaves the terminal's line to what comes next.
func (p *importProgress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
