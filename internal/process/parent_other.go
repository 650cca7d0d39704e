//go:build !linux

package process

import (
	"os/exec"
	"syscall"
)

// endWithParent keeps a terminal's Ctrl-C from reaching the child directly, so
// that its parent decides the order of a shutdown. The kernel does not signal the
// child here when its parent dies; the child reads the end of its standard input.
func endWithParent(cmd *exec.Cmd, _ syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}
