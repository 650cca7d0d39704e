//go:build !linux

package bench

import "time"

// exactCPU returns false: it is not supported.
func exactCPU(int) (time.Duration, bool) { return 0, false }
