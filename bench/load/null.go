package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// nullAnswer has the size of the answer to a hot read.
var nullAnswer = func() []byte {
	body := bytes.Repeat([]byte{'x'}, 420)
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nServer-Timing: l1\r\nX-Filler: %s\r\n"+
		"\r\n%s", len(body), bytes.Repeat([]byte{'x'}, 120), body)
}()

// Null is a server that answers every request with the same bytes. The throughput
// against it is the maximum of the generator. It runs on one thread.
type Null struct {
	listener int
	poller   *poller
	Address  string
}

// ListenNull returns a null server on a free port of 127.0.0.1.
func ListenNull() (*Null, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	fail := func(what string, err error) (*Null, error) {
		unix.Close(fd)
		return nil, os.NewSyscallError(what, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return fail("fcntl", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fail("bind", err)
	}
	if err := unix.Listen(fd, 1024); err != nil {
		return fail("listen", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return fail("getsockname", err)
	}
	p, err := newPoller()
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := p.add(fd, fd); err != nil {
		p.close()
		return fail("watch", err)
	}
	port := name.(*unix.SockaddrInet4).Port
	return &Null{listener: fd, poller: p, Address: net.JoinHostPort("127.0.0.1", fmt.Sprint(port))}, nil
}

// nullConn is the state of one connection: the input matched so far and the unwritten
// output.
type nullConn struct {
	matched int // bytes of the mark that ends a request
	out     []byte
	outAt   int
}

// Serve answers until ctx ends.
func (s *Null) Serve(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	conns := make(map[int]*nullConn)
	defer func() {
		for fd := range conns {
			unix.Close(fd)
		}
		unix.Close(s.listener)
		s.poller.close()
	}()
	buffer := make([]byte, readBytes)
	ready := make([]readiness, eventsMax)
	for ctx.Err() == nil {
		n, err := s.poller.wait(sleepMax, ready)
		if err != nil {
			return err
		}
		for _, r := range ready[:n] {
			if r.tag == s.listener {
				if err := s.accept(conns); err != nil {
					return err
				}
				continue
			}
			c, ok := conns[r.tag]
			if ok && !c.serve(r.tag, buffer, r.over) {
				s.poller.remove(r.tag)
				unix.Close(r.tag)
				delete(conns, r.tag)
			}
		}
	}
	return nil
}

func (s *Null) accept(conns map[int]*nullConn) error {
	for {
		fd, _, err := unix.Accept(s.listener)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
			continue
		case err != nil:
			return os.NewSyscallError("accept", err)
		}
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			unix.Close(fd)
			continue
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		conns[fd] = &nullConn{}
		if err := s.poller.add(fd, fd); err != nil {
			return err
		}
	}
}

// serve reads and answers the available requests, and reports whether the connection is
// still open.
func (c *nullConn) serve(fd int, buffer []byte, over bool) bool {
	for drained := false; ; {
		for c.outAt < len(c.out) {
			n, errno := writeSocket(fd, c.out[c.outAt:])
			if errno == unix.EAGAIN {
				return true
			}
			if errno != 0 && errno != unix.EINTR {
				return false
			}
			c.outAt += n
		}
		c.out, c.outAt = c.out[:0], 0
		if drained {
			return true
		}
		n, errno := readSocket(fd, buffer)
		if errno == unix.EAGAIN {
			return true
		}
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n == 0 {
			return false
		}
		for _, b := range buffer[:n] {
			switch {
			case b == endOfHead[c.matched]:
				c.matched++
			case b == '\r':
				c.matched = 1
			default:
				c.matched = 0
			}
			if c.matched == len(endOfHead) {
				c.matched = 0
				c.out = append(c.out, nullAnswer...)
			}
		}
		drained = n < len(buffer) && !over // the poller reports more
	}
}
