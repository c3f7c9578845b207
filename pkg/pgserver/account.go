package pgserver

import (
	"errors"
	"os"
	"os/exec"
	osuser "os/user"
	"strconv"
	"syscall"
)

// account is whom the server runs as.
type account struct {
	uid, gid uint32
	switched bool // this process is root and must become that user
}

// accountFor returns who may run the cluster in folder: whoever runs this process.
// For root, who may not, it is the folder's owner, and where that is root too or
// the folder is absent, the user postgres, or nobody.
func accountFor(folder string) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{uid: uint32(uid), gid: uint32(os.Getegid())}, nil
	}
	if info, err := os.Stat(folder); err == nil {
		if uid, gid := owner(info); uid != 0 {
			return account{uid: uid, gid: gid, switched: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := osuser.Lookup(name); err == nil {
			uid, badUID := strconv.ParseUint(found.Uid, 10, 32)
			gid, badGID := strconv.ParseUint(found.Gid, 10, 32)
			if err := errors.Join(badUID, badGID); err != nil {
				return account{}, err
			}
			return account{uid: uint32(uid), gid: uint32(gid), switched: true}, nil
		}
	}
	return account{}, errors.New("PostgreSQL cannot run as root, and this system has no user postgres to run it as")
}

func owner(info os.FileInfo) (uid, gid uint32) {
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Uid, stat.Gid
}

// name is for messages.
func (a account) name() string {
	id := strconv.FormatUint(uint64(a.uid), 10)
	if found, err := osuser.LookupId(id); err == nil {
		return found.Username
	}
	return id
}

// command prepares a program to run as the account, in folder.
func (a account) command(folder, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	if a.switched {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
	return cmd
}

// canEnter asks the kernel, since mode bits do not tell all (access lists, mounts).
func (a account) canEnter(folder string) bool {
	if !a.switched {
		return true
	}
	return a.command("/", "/bin/sh", "-c", `cd -- "$1"`, "sh", folder).Run() == nil
}

// give makes the account the owner of a file or folder, never of what a link points to.
func (a account) give(path string) error {
	if !a.switched {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}
