package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
)

func addNiceFlag(cmd *cobra.Command, nice *int) {
	cmd.Flags().IntVar(nice, "nice", 0, "how far to yield the processor to other processes, 0 to 19")
}

func checkNice(nice int) error {
	if nice < 0 || nice > 19 {
		return fmt.Errorf("--nice %d: must be 0 to 19", nice)
	}
	return nil
}

// lowerPriority makes this process yield the processor to others, as nice(1) does.
// Linux keeps the value per thread and hands it on to new ones, so every thread
// there is gets it: call it before the engine starts its own.
func lowerPriority(nice int) error {
	if nice == 0 {
		return nil
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil { // not Linux
		return os.NewSyscallError("setpriority", syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice))
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return fmt.Errorf("lower priority: %w", err)
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, syscall.ESRCH) {
			return os.NewSyscallError("setpriority", err)
		}
	}
	return nil
}
