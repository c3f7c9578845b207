//go:build !linux

package child

import "syscall"

func signalWhenOrphaned(*syscall.SysProcAttr, syscall.Signal) {}
