package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"
)

// Nice is the nice value of a process, 0 to 19.
type Nice int

// Flags adds the flag of n.
func (n *Nice) Flags(flags *pflag.FlagSet) {
	flags.IntVar((*int)(n), "nice", 0, "nice value, 0 to 19")
}

// Validate returns an error unless n is 0 to 19.
func (n Nice) Validate() error {
	if n < 0 || n > 19 {
		return fmt.Errorf("--nice %d: must be 0 to 19", n)
	}
	return nil
}

// Apply lowers the priority of this process. Linux keeps a priority per thread and new threads
// inherit it, so Apply sets that of every thread.
func (n Nice) Apply() error {
	if n == 0 {
		return nil
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil { // not Linux
		return os.NewSyscallError("setpriority", syscall.Setpriority(syscall.PRIO_PROCESS, 0, int(n)))
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return fmt.Errorf("lower priority: %w", err)
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, int(n)); err != nil && !errors.Is(err, syscall.ESRCH) {
			return os.NewSyscallError("setpriority", err)
		}
	}
	return nil
}
