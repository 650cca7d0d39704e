package processor_test

import (
	"runtime"
	"slices"
	"testing"

	"companyscore/bench/processor"
)

func TestKeepStaysOnOneProcessor(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("threads are kept on Linux only")
	}
	all := processor.Allowed()
	if len(all) == 0 || !slices.IsSorted(all) {
		t.Fatalf("may run on %v", all)
	}
	for _, cpu := range all {
		kept := make(chan []int)
		go func() {
			processor.Keep(cpu)
			kept <- processor.Allowed() // of this thread
		}()
		if got := <-kept; !slices.Equal(got, []int{cpu}) {
			t.Errorf("kept on %d, and may run on %v", cpu, got)
		}
	}
	if got := processor.Allowed(); !slices.Equal(got, all) {
		t.Errorf("others may run on %v now", got)
	}
}
