//go:build !linux

package process

import (
	"os/exec"
	"syscall"
)

// endWithParent keeps a terminal's Ctrl-C from reaching the child directly, so
// that its parent decides the order of a shutdown. There is no way here to have
// the kernel end the child with its parent.
func endWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}
