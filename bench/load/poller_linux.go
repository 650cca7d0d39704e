package load

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for sockets with epoll, with a resolution of microseconds.
type poller struct {
	fd     int
	events [eventsMax]unix.EpollEvent
}

// readiness is the state of a socket.
type readiness struct {
	tag     int
	in, out bool
	over    bool // the peer has closed its side
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll instance: %w", err)
	}
	return &poller{fd: fd}, nil
}

// add registers a socket. Closing the socket removes it.
func (p *poller) add(fd, tag int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | uint32(unix.EPOLLET&0xffffffff), Fd: int32(tag)}
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &event)
}

// remove does nothing: the kernel removes closed sockets.
func (p *poller) remove(int) {}

// wantOut does nothing: edge-triggered epoll reports when a socket is writable again.
func (p *poller) wantOut(int) {}

// wait fills ready with the sockets that became ready and returns their number. It
// waits up to timeout. Each change is reported once.
func (p *poller) wait(timeout time.Duration, ready []readiness) (int, error) {
	var n uintptr
	var errno unix.Errno
	events := unsafe.Pointer(&p.events[0])
	limit := uintptr(min(len(p.events), len(ready)))
	if timeout <= 0 {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(events), limit, 0, 0, 0)
	} else {
		ts := unix.NsecToTimespec(int64(timeout))
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(events), limit, uintptr(unsafe.Pointer(&ts)), 0, 0)
		if errno == unix.ENOSYS { // before Linux 5.11
			n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(events), limit, uintptr(timeout.Milliseconds()), 0, 0)
		}
	}
	if errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, os.NewSyscallError("epoll_pwait", errno)
	}
	for i, event := range p.events[:n] {
		ready[i] = readiness{
			tag: int(event.Fd),
			in:  event.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0,
			out: event.Events&unix.EPOLLOUT != 0, over: event.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0,
		}
	}
	return int(n), nil
}

func (p *poller) close() { unix.Close(p.fd) }

// prepareThread sets exact timers and a priority for the calling thread. It returns
// the granted priority, which is Normal without the privileges.
func prepareThread(p Priority) Priority {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // by default sleeps are up to 50 µs longer
	var err error
	switch p {
	case High:
		err = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -10)
	case RealTime:
		err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
	}
	if err != nil || p == "" {
		return Normal
	}
	return p
}

// threadCPU returns the CPU time of the calling thread.
func threadCPU() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Sockets are non-blocking, so raw system calls need not inform the Go scheduler.

func readSocket(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

func writeSocket(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
