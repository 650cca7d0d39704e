package process

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel send SIGTERM to the child when the thread that
// starts it ends, and keeps a terminal's Ctrl-C from reaching it directly, so
// that its parent decides the order of a shutdown.
func endWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	cmd.SysProcAttr.Setpgid = true
}
