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

// processors are those that this process may run on.
func processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{0}
	}
	var all []int
	for cpu := 0; len(all) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all
}

// runOn keeps the calling thread on one processor, if it may be.
func runOn(cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set)
}
