// Package processor says which processors there are and keeps threads on them, so
// that a server and what asks it do not take time from each other. Where the system
// knows nothing of the kind, threads stay where they are.
package processor

import "runtime"

// Keep has the calling goroutine run on one processor to its end: it locks the
// thread and never gives it back, so the thread ends with the goroutine.
func Keep(cpu int) {
	runtime.LockOSThread()
	_ = keepThread(0, cpu) // a processor that is none leaves it where it is
}
