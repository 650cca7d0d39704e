package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// exactCPU is what a process and its threads have used so far, to the nanosecond,
// where /proc counts hundredths of a second.
func exactCPU(pid int) (time.Duration, bool) {
	// The clock of another process, as clock_getcpuclockid(3) makes its number.
	const schedulerClock = 2
	var at unix.Timespec
	if pid <= 0 || pid >= 1<<28 || unix.ClockGettime(int32(^pid<<3|schedulerClock), &at) != nil {
		return 0, false
	}
	return time.Duration(at.Nano()), true
}
