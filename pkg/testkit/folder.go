package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	folderPrefix = "partilha-test-"
	ownerFile    = "owner" // locked while the test binary lives
)

// newFolder makes a temporary folder for the servers of one test.
func newFolder(t testing.TB) string {
	t.Helper()
	folder, remove, err := makeFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// makeFolder makes a folder that every user may enter, since a server does not run
// as root, and marks it as that of a living process.
func makeFolder() (folder string, remove func() error, err error) {
	sweepOnce()
	folder, err = os.MkdirTemp("", folderPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for a test: %w", err)
	}
	owner, err := os.Create(filepath.Join(folder, ownerFile))
	if err == nil {
		err = errors.Join(os.Chmod(folder, 0o711), syscall.Flock(int(owner.Fd()), syscall.LOCK_EX))
	}
	remove = func() error {
		return errors.Join(owner.Close(), os.RemoveAll(folder))
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("make a folder for a test: %w", err), remove())
	}
	return folder, remove, nil
}

// sweepOnce removes what test binaries that were killed have left behind. The age
// spares a folder whose owner is just about to mark it.
var sweepOnce = sync.OnceFunc(func() {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*")) // the only error is a bad pattern
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err == nil && info.IsDir() && time.Since(info.ModTime()) > time.Minute && abandoned(folder) {
			os.RemoveAll(folder) // another user's folder stays; so be it
		}
	}
})

func abandoned(folder string) bool {
	owner, err := os.OpenFile(filepath.Join(folder, ownerFile), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	defer owner.Close()
	return syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
