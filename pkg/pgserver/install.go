package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// installScript runs as root. Debian's package would make a cluster and start it;
// the first file stops the one, the second stops the other, and neither replaces
// a file that an administrator wrote.
const installScript = `
set -eu
export DEBIAN_FRONTEND=noninteractive
settings=/etc/postgresql-common/createcluster.conf
if [ ! -e "$settings" ]; then
	mkdir -p "$(dirname "$settings")"
	echo 'create_main_cluster = false' >"$settings"
fi
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 1' INT TERM HUP
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
apt-get update || echo 'going on with the package lists that are there' >&2
apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold postgresql
`

// Install installs the distribution's postgresql package through apt-get, whose
// output goes to out (nil discards it). It does nothing where Find succeeds.
//
// It needs root, or sudo: without a password, or asking for it on the terminal.
// No system cluster is made or started, unless the machine's own configuration
// asks for it. Its errors are sentences that say what to do instead.
func Install(ctx context.Context, out io.Writer) error {
	if _, err := Find(); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("PostgreSQL is not installed and there is no apt-get here: install its server with the package manager of this system")
	}
	cmd, err := asRoot(ctx, installScript)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("install PostgreSQL: apt-get did not succeed: %w", err)
	}
	_, err = Find()
	return err
}

// asRoot prepares a shell script to be run by root. An end of ctx interrupts it
// gently: apt-get killed half-way leaves a broken package behind.
func asRoot(ctx context.Context, script string) (*exec.Cmd, error) {
	argv := []string{"sh", "-c", script}
	if os.Geteuid() != 0 {
		sudo, err := sudo(ctx)
		if err != nil {
			return nil, err
		}
		argv = append(sudo, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd, nil
}

func sudo(ctx context.Context) ([]string, error) {
	impossible := errors.New("PostgreSQL is not installed, and only root can install it: run apt-get install postgresql as root")
	if _, err := exec.LookPath("sudo"); err != nil {
		return nil, impossible
	}
	if exec.CommandContext(ctx, "sudo", "-n", "true").Run() == nil {
		return []string{"sudo", "-n"}, nil
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, impossible
	}
	terminal.Close()
	return []string{"sudo"}, nil
}
