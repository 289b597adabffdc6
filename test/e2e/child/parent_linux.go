package child

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the process when ours dies, whatever becomes of us.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
