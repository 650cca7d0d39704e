//go:build !linux

package bench

import "time"

// exactCPU is not known here.
func exactCPU(int) (time.Duration, bool) { return 0, false }
