package pgserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"partilha.dev/pkg/internal/child"
)

// farRoot holds the clusters of root whose own folder the server's user cannot reach.
const farRoot = "/var/lib/partilha"

// cluster is the folder of one server and whom it belongs to.
type cluster struct {
	dir     string // absolute, as the caller wrote it; for messages
	home    string // the same, links resolved
	account account
}

func (c *cluster) data() string     { return filepath.Join(c.home, "data") }
func (c *cluster) unborn() string   { return filepath.Join(c.home, "data.new") }
func (c *cluster) lockFile() string { return filepath.Join(c.home, "lock") }
func (c *cluster) logFile() string  { return filepath.Join(c.home, "server.log") }

// openCluster finds the folder, or makes it; it does not make the data yet.
func openCluster(ctx context.Context, dir string) (*cluster, error) {
	if dir == "" {
		return nil, errors.New("a PostgreSQL server needs a folder for its data")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the PostgreSQL folder: %w", err)
	}
	who, err := accountFor(dir)
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, account: who}
	if err := c.settle(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// settle sets home, making the folder if it is absent.
func (c *cluster) settle(ctx context.Context) error {
	info, err := os.Stat(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c.makeHome(ctx)
	}
	if err != nil {
		return fmt.Errorf("open the PostgreSQL folder: %w", err)
	}
	if uid, _ := owner(info); !c.account.switched && uid != c.account.uid {
		return fmt.Errorf("%s belongs to the user %s: run this as the same user as before, or remove it",
			c.dir, account{uid: uid}.name())
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("open the PostgreSQL folder: %w", err)
	}
	if c.home, err = filepath.EvalSymlinks(c.dir); err != nil {
		return fmt.Errorf("open the PostgreSQL folder: %w", err)
	}
	for _, entry := range entries {
		if !ours(entry.Name()) {
			return fmt.Errorf("%s is not a folder of this program: it holds %s; name an empty or absent folder", c.dir, entry.Name())
		}
	}
	switch reachable := c.account.canEnter(filepath.Dir(c.home)); {
	case len(entries) == 0 && !reachable:
		if err := os.Remove(c.dir); err != nil {
			return fmt.Errorf("open the PostgreSQL folder: %w", err)
		}
		return c.makeHome(ctx)
	case !reachable:
		return fmt.Errorf("the user %s, as whom PostgreSQL runs, cannot enter the folders above %s: allow it, or remove %s",
			c.account.name(), c.dir, c.dir)
	}
	return c.own(c.home)
}

// ours is whether this package makes files of that name.
func ours(name string) bool {
	switch name {
	case "data", "data.new", "lock", "server.log", "server.log.1":
		return true
	}
	return false
}

func (c *cluster) makeHome(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(c.dir), 0o755); err != nil {
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(c.dir))
	if err != nil {
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	c.home = filepath.Join(parent, filepath.Base(c.dir))
	if err := os.Remove(c.home); err != nil && !errors.Is(err, fs.ErrNotExist) { // a link to nowhere
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	if !c.account.canEnter(parent) {
		return c.makeFarHome(ctx)
	}
	if err := os.Mkdir(c.home, 0o700); err != nil {
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	return c.own(c.home)
}

// makeFarHome puts the files where the account can reach them and a link where
// the caller looks for them. Files that are there already lost their link: somebody
// removed it, and with it the cluster.
func (c *cluster) makeFarHome(ctx context.Context) error {
	if err := os.MkdirAll(farRoot, 0o755); err != nil {
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	link := c.home
	sum := sha256.Sum256([]byte(link))
	c.home = filepath.Join(farRoot, hex.EncodeToString(sum[:6]))
	if err := c.discard(ctx); err != nil {
		return err
	}
	if err := os.Mkdir(c.home, 0o700); err != nil {
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	if err := c.own(c.home); err != nil {
		return err
	}
	if err := os.Symlink(c.home, link); err != nil {
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	return nil
}

// discard removes home and what it holds, unless a server runs on it.
func (c *cluster) discard(ctx context.Context) error {
	if _, err := os.Lstat(c.home); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.RemoveAll(c.home); err != nil {
		return fmt.Errorf("remove the PostgreSQL folder: %w", err)
	}
	return nil
}

func (c *cluster) own(folder string) error {
	if err := errors.Join(os.Chmod(folder, 0o700), c.account.give(folder)); err != nil {
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	return nil
}

// initialize makes the data if there are none. It does so under another name and
// renames at the end, so that an interruption leaves nothing half-made behind.
//
// Whoever reaches the socket's folder is trusted; a connection over the network
// is refused even if a setting opens a port.
func (c *cluster) initialize(programs string, o Options, lock *os.File) error {
	if _, err := os.Stat(c.data()); err == nil {
		return nil
	}
	if err := os.RemoveAll(c.unborn()); err != nil {
		return fmt.Errorf("make a PostgreSQL cluster: %w", err)
	}
	program, args := "initdb", []string{
		"--pgdata=" + c.unborn(), "--username=" + user, "--encoding=UTF8", "--locale=C",
		"--auth-local=trust", "--auth-host=reject",
	}
	if o.follows != nil {
		program, args = "pg_basebackup", o.follows.copyTo(c.unborn())
	}
	if o.Settings["fsync"] == "off" {
		args = append(args, "--no-sync")
	}
	cmd := c.account.command(c.home, filepath.Join(programs, program), args...)
	cmd.Env = environment(nil)
	cmd.ExtraFiles = []*os.File{lock} // its helpers may outlive it for a moment
	output := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := child.Run(cmd, syscall.SIGKILL); err != nil {
		return fmt.Errorf("make a PostgreSQL cluster: %s", c.complaint(output.String(), err))
	}
	if err := os.Rename(c.unborn(), c.data()); err != nil {
		return fmt.Errorf("make a PostgreSQL cluster: %w", err)
	}
	return nil
}

// environment is that of this process without what would redirect PostgreSQL's
// programs, in one time zone and language everywhere.
func environment(extra []string) []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") {
			kept = append(kept, variable)
		}
	}
	return append(append(kept, "TZ=UTC", "LC_ALL=C"), extra...)
}
