//go:build !linux

package process

import (
	"os/exec"
	"syscall"
)

// endWithParent makes a terminal's Ctrl-C not reach the child, so its parent controls
// the order of a shutdown. These systems do not signal the child when its parent dies;
// the child reads the end of its standard input.
func endWithParent(cmd *exec.Cmd, _ syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}
