//go:build !linux

package processor

import (
	"errors"
	"runtime"
)

// Allowed returns the processors that this process may run on, in order.
func Allowed() []int {
	all := make([]int, runtime.NumCPU())
	for i := range all {
		all[i] = i
	}
	return all
}

// KeepProcess returns errors.ErrUnsupported.
func KeepProcess(int) error { return errors.ErrUnsupported }

func keepThread(int, int) error { return errors.ErrUnsupported }
