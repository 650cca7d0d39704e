package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// exactCPU returns the CPU time of a process with a resolution of nanoseconds. /proc has
// hundredths of a second.
func exactCPU(pid int) (time.Duration, bool) {
	// The clock id of another process, as in clock_getcpuclockid(3).
	const schedulerClock = 2
	var at unix.Timespec
	if pid <= 0 || pid >= 1<<28 || unix.ClockGettime(int32(^pid<<3|schedulerClock), &at) != nil {
		return 0, false
	}
	return time.Duration(at.Nano()), true
}
