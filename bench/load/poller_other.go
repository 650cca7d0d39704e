//go:build !linux

package load

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits for sockets in the kernel. It is slower than that for Linux, and
// sleeps to the millisecond.
type poller struct {
	fds  []unix.PollFd
	tags []int
}

// readiness is what can be done with a socket.
type readiness struct {
	tag     int
	in, out bool
	over    bool // the other end will send no more
}

func newPoller() (*poller, error) { return &poller{}, nil }

// add has the poller watch a socket.
func (p *poller) add(fd, tag int) error {
	p.fds = append(p.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT})
	p.tags = append(p.tags, tag)
	return nil
}

// remove must come before a socket is closed.
func (p *poller) remove(fd int) {
	i := slices.IndexFunc(p.fds, func(f unix.PollFd) bool { return f.Fd == int32(fd) })
	if i >= 0 {
		p.fds, p.tags = slices.Delete(p.fds, i, i+1), slices.Delete(p.tags, i, i+1)
	}
}

// wantOut asks to be told again when a socket can be written to.
func (p *poller) wantOut(fd int) {
	if i := slices.IndexFunc(p.fds, func(f unix.PollFd) bool { return f.Fd == int32(fd) }); i >= 0 {
		p.fds[i].Events = unix.POLLIN | unix.POLLOUT
	}
}

// wait fills ready with what is ready, and waits for it up to timeout. That a socket
// can be written to is told once.
func (p *poller) wait(timeout time.Duration, ready []readiness) (int, error) {
	if _, err := unix.Poll(p.fds, int(timeout.Milliseconds())); err != nil {
		if errors.Is(err, unix.EINTR) {
			return 0, nil
		}
		return 0, err
	}
	n := 0
	for i := range p.fds {
		got := p.fds[i].Revents
		if got == 0 || n == len(ready) {
			continue
		}
		ready[n] = readiness{tag: p.tags[i], in: got&^unix.POLLOUT != 0, out: got&unix.POLLOUT != 0, over: got&(unix.POLLHUP|unix.POLLERR) != 0}
		p.fds[i].Events = unix.POLLIN
		n++
	}
	return n, nil
}

func (p *poller) close() {}

// prepareThread leaves the thread as it is.
func prepareThread(Priority) Priority { return Normal }

// threadCPU is not known here.
func threadCPU() time.Duration { return 0 }

func readSocket(fd int, b []byte) (int, unix.Errno) { return result(unix.Read(fd, b)) }

func writeSocket(fd int, b []byte) (int, unix.Errno) { return result(unix.Write(fd, b)) }

func result(n int, err error) (int, unix.Errno) {
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		errno = unix.EIO
	}
	return max(n, 0), errno
}
