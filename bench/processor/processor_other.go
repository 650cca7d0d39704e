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

// KeepProcess fails with errors.ErrUnsupported: processes cannot be kept on a processor here.
func KeepProcess(int) error { return errors.ErrUnsupported }

func keepThread(int, int) error { return errors.ErrUnsupported }
