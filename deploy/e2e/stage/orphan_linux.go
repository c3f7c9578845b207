package stage

import "syscall"

// endWithOwner has the kernel kill the child when the test binary is killed.
func endWithOwner(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
