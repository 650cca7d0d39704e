package bench

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// burn uses CPU time until the process has used d.
func burn(d time.Duration) {
	for before := CPU(os.Getpid()); CPU(os.Getpid()) < before+d; {
	}
}

// Both ways to read the CPU time of a process must agree.
func TestProcessClockAgreesWithProc(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	burn(50 * time.Millisecond)
	// The CPU time of this process grows, so one reading is between two of the other.
	before, ok := exactCPU(os.Getpid())
	counted := procCPU(os.Getpid())
	after, _ := exactCPU(os.Getpid())
	const tick = time.Second / ticksPerSecond
	if !ok || counted < before-3*tick || counted > after+3*tick || after <= 0 {
		t.Errorf("/proc says %s, the clock %s and then %s", counted, before, after)
	}
	if used, ok := exactCPU(1 << 30); ok || used != 0 {
		t.Errorf("a process that is not there has used %s", used)
	}
	if used := CPU(1 << 30); used != 0 {
		t.Errorf("a process that is not there has used %s", used)
	}
	if held := ResidentBytes(os.Getpid()); held < 1<<20 {
		t.Errorf("this process holds %d bytes", held)
	}
}

func TestWatchingTellsWhatHappenedWithin(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	w := Watch(func() map[string]int { return map[string]int{"me": os.Getpid(), "gone": 1 << 30} })
	begin := time.Now()
	burn(100 * time.Millisecond)
	w.Close()
	got := w.report(begin, time.Now(), 10)
	if len(got.Processes) != 2 || got.Processes[1].Name != "me" || got.Processes[1].CPU <= 0 || got.Processes[1].RSSEnd < 1<<20 ||
		got.CPUPerRequest <= 0 {
		t.Errorf("%+v", got)
	}
	if gone := got.Processes[0]; gone.CPU != 0 || gone.RSSEnd != 0 {
		t.Errorf("a process that is gone has %+v", gone)
	}
}
