// Package processor lists processors and pins threads to them, so that a server and the
// load generator do not share one. On systems without support it pins nothing.
package processor

import "runtime"

// Keep pins the calling goroutine to one processor until it ends. It locks the thread and
// never unlocks it, so the thread ends with the goroutine.
func Keep(cpu int) {
	runtime.LockOSThread()
	_ = keepThread(0, cpu) // an invalid processor pins nothing
}
