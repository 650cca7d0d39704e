//go:build !linux

package bench

import (
	"runtime"
	"time"
)

// exactCPU is not known here.
func exactCPU(int) (time.Duration, bool) { return 0, false }

// processors are those that this process may run on.
func processors() []int { return make([]int, runtime.NumCPU()) }

// runOn cannot keep a thread on a processor here.
func runOn(int) {}
