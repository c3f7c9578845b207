package child

import "syscall"

func signalWhenOrphaned(attributes *syscall.SysProcAttr, signal syscall.Signal) {
	attributes.Pdeathsig = signal
}
