package bench

import (
	"sync"
	"time"

	"companyscore/bench/processor"
	"companyscore/bench/report"
)

const (
	stopsFor = time.Second            // length of the measurement
	stopMin  = 100 * time.Microsecond // shorter interruptions are not counted
)

// watchStops reads the clock in a busy loop on every processor for d and returns the
// interruptions of 0.1 ms and more by a hypervisor or the kernel.
func watchStops(d time.Duration) report.Stops {
	var all report.Stops
	var mu sync.Mutex
	var watching sync.WaitGroup
	for _, cpu := range processor.Allowed() {
		watching.Go(func() {
			processor.Keep(cpu)
			count, lost, longest := 0, time.Duration(0), time.Duration(0)
			begin := time.Now()
			for last := begin; last.Sub(begin) < d; {
				now := time.Now()
				if gap := now.Sub(last); gap >= stopMin {
					count, lost, longest = count+1, lost+gap, max(longest, gap)
				}
				last = now
			}
			mu.Lock()
			defer mu.Unlock()
			all.Count += count
			all.Share = max(all.Share, lost.Seconds()/d.Seconds())
			all.Longest = max(all.Longest, float64(longest.Nanoseconds())/1000)
		})
	}
	watching.Wait()
	return all
}
