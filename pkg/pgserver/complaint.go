package pgserver

import (
	"fmt"
	"regexp"
	"strings"
)

// sharedMemoryIsShort finds one line of the log: a full disk says the same otherwise.
var sharedMemoryIsShort = regexp.MustCompile(`could not .*shared memory.*: (No space left on device|Cannot allocate memory)`)

// complaint boils what PostgreSQL wrote before it gave up down to one sentence.
// exit is how it ended, for when it wrote nothing.
func (c *cluster) complaint(log string, exit error) string {
	has := func(text string) bool { return strings.Contains(log, text) }
	switch {
	case sharedMemoryIsShort.MatchString(log):
		return "the system has too little shared memory; enlarge /dev/shm or lower shared_buffers"
	case has("No space left on device"), has("Disk quota exceeded"):
		return "no space is left on " + c.dir
	case has(`lock file "postmaster.pid" already exists`):
		pid, _ := c.postmaster()
		return c.occupied(pid).Error()
	case has("database files are incompatible with server"), has("was initialized by PostgreSQL version"):
		return fmt.Sprintf("%s holds data of another version of PostgreSQL: install that version, or remove %s", c.dir, c.dir)
	}
	if line := gravest(log); line != "" {
		return line
	}
	if exit != nil {
		return fmt.Sprintf("the program on %s ended with %v and no message", c.dir, exit)
	}
	return fmt.Sprintf("the program on %s ended without a message", c.dir)
}

// turnedAway is what a connection is told while the server starts or ends.
const turnedAway = "the database system is "

// gravest returns the message of the first line that PostgreSQL calls fatal, else
// of the first error, else the last line there is.
func gravest(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, severity := range []string{"PANIC:", "FATAL:", "error:", "ERROR:"} {
		for _, line := range lines {
			_, message, found := strings.Cut(line, severity)
			if message = strings.TrimSpace(message); found && !strings.HasPrefix(message, turnedAway) {
				return message
			}
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
