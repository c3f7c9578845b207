package pgserver

import (
	"errors"
	"testing"
)

func TestALogBecomesOneSentence(t *testing.T) {
	c := &cluster{dir: "/srv/db", home: t.TempDir()}
	for name, row := range map[string]struct{ log, want string }{
		"a full disk while the server starts": {
			"2026-11-20 09:00:00.000 UTC [7] FATAL:  could not write lock file \"postmaster.pid\": No space left on device\n" +
				"2026-11-20 09:00:00.000 UTC [7] LOG:  database system is shut down\n",
			"no space is left on /srv/db",
		},
		"a full disk while the cluster is made": {
			"selecting dynamic shared memory implementation ... posix\n" +
				"performing post-bootstrap initialization ... 2026-11-20 09:00:00.000 UTC [9] PANIC:  could not write to file \"pg_wal/xlogtemp.9\": No space left on device\n" +
				"child process was terminated by signal 6: Aborted\n",
			"no space is left on /srv/db",
		},
		"a small /dev/shm": {
			"2026-11-20 09:00:00.000 UTC [7] FATAL:  could not resize shared memory segment \"/PostgreSQL.1\" to 8 bytes: No space left on device\n",
			"the system has too little shared memory; enlarge /dev/shm or lower shared_buffers",
		},
		"a server started by hand": {
			"2026-11-20 09:00:00.000 UTC [7] FATAL:  lock file \"postmaster.pid\" already exists\n",
			"another server already runs on /srv/db",
		},
		"data of another version": {
			"2026-11-20 09:00:00.000 UTC [7] FATAL:  database files are incompatible with server\n",
			"/srv/db holds data of another version of PostgreSQL: install that version, or remove /srv/db",
		},
		"anything else that is fatal": {
			"2026-11-20 09:00:00.000 UTC [7] LOG:  starting\n2026-11-20 09:00:00.000 UTC [8] FATAL:  the database system is starting up\n2026-11-20 09:00:00.000 UTC [7] FATAL:  out of ink\n2026-11-20 09:00:00.000 UTC [7] LOG:  shut down\n",
			"out of ink",
		},
		"an error of initdb": {
			"initdb: error: could not look up effective user ID 4711: user does not exist\n",
			"could not look up effective user ID 4711: user does not exist",
		},
		"a line of no known form": {"ld.so: no libpq\n", "ld.so: no libpq"},
		"nothing":                 {"", "the program on /srv/db ended with signal: killed and no message"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.complaint(row.log, errors.New("signal: killed")); got != row.want {
				t.Errorf("got %s\nwant %s", got, row.want)
			}
		})
	}
}
