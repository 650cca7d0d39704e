package process

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel send sig to the child when the thread that starts it
// ends. A terminal's Ctrl-C does not reach the child, so its parent controls the order
// of a shutdown.
func endWithParent(cmd *exec.Cmd, sig syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = sig
	cmd.SysProcAttr.Setpgid = true
}
