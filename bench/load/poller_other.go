//go:build !linux

package load

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits for sockets with poll, with a resolution of milliseconds. It is slower
// than the one for Linux.
type poller struct {
	fds  []unix.PollFd
	tags []int
}

// readiness is the state of a socket.
type readiness struct {
	tag     int
	in, out bool
	over    bool // the peer has closed its side
}

func newPoller() (*poller, error) { return &poller{}, nil }

// add registers a socket.
func (p *poller) add(fd, tag int) error {
	p.fds = append(p.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT})
	p.tags = append(p.tags, tag)
	return nil
}

// remove unregisters a socket. Call it before closing the socket.
func (p *poller) remove(fd int) {
	i := slices.IndexFunc(p.fds, func(f unix.PollFd) bool { return f.Fd == int32(fd) })
	if i >= 0 {
		p.fds, p.tags = slices.Delete(p.fds, i, i+1), slices.Delete(p.tags, i, i+1)
	}
}

// wantOut makes wait report when a socket is writable again.
func (p *poller) wantOut(fd int) {
	if i := slices.IndexFunc(p.fds, func(f unix.PollFd) bool { return f.Fd == int32(fd) }); i >= 0 {
		p.fds[i].Events = unix.POLLIN | unix.POLLOUT
	}
}

// wait fills ready with the sockets that are ready and returns their number. It waits
// up to timeout. It reports once that a socket is writable.
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
		ready[n] = readiness{tag: p.tags[i], in: got&^unix.POLLOUT != 0, out: got&unix.POLLOUT != 0,
			over: got&(unix.POLLHUP|unix.POLLERR) != 0}
		p.fds[i].Events = unix.POLLIN
		n++
	}
	return n, nil
}

func (p *poller) close() {}

// prepareThread changes nothing.
func prepareThread(Priority) Priority { return Normal }

// threadCPU returns 0: the CPU time of a thread is not available.
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
