package process

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel send sig to the child when the thread that starts
// it ends, and keeps a terminal's Ctrl-C from reaching it directly, so that its
// parent decides the order of a shutdown.
func endWithParent(cmd *exec.Cmd, sig syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = sig
	cmd.SysProcAttr.Setpgid = true
}
