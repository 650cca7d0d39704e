package server

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"companyscore/internal/config"
)

const (
	// slackMax bounds the delay of a deadline of a connection.
	slackMax = time.Second
	// refusedMax bounds the connections beyond a limit that get an answer at one time.
	// Others are closed without an answer.
	refusedMax = 256
	// acceptPauseMax bounds the pause after a transient error of Accept, such as a lack of
	// file descriptors.
	acceptPauseMax = time.Second
)

// connections holds the open connections of a server.
type connections struct {
	limits config.HTTP
	slack  time.Duration // maximum delay of deadlines
	wait   time.Duration // maximum wait for a request after a stop
	pool   sync.Pool     // of *buffers

	mu        sync.Mutex
	listeners []net.Listener
	stopped   bool
	open      map[*conn]struct{}
	refused   int // number of open connections that get a refusal
	from      map[netip.Addr]int
	serving   sync.WaitGroup // grows only before stopped
}

func newConnections(limits config.HTTP) *connections {
	shortest := min(limits.ReadTimeout, limits.WriteTimeout, limits.IdleTimeout)
	return &connections{limits: limits, slack: min(shortest/8, slackMax), wait: stopReadMax, open: make(map[*conn]struct{}),
		from: make(map[netip.Addr]int)}
}

// Serve answers requests on ln until Shutdown is called or ln is closed, and closes ln.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	if !s.connections.listen(ln) {
		return nil
	}
	var pause time.Duration
	for {
		accepted, err := ln.Accept()
		if err == nil {
			pause = 0
			s.start(accepted)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if transient, ok := err.(interface{ Temporary() bool }); !ok || !transient.Temporary() {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), acceptPauseMax)
		s.logger.Error("connection not accepted", "pause", pause, "err", err)
		time.Sleep(pause)
	}
}

// listen records a listener. It returns false after a stop.
func (o *connections) listen(ln net.Listener) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listeners = append(o.listeners, ln)
	return !o.stopped
}

// start serves a connection in a new goroutine.
func (s *Server) start(accepted net.Conn) {
	c := s.newConn(accepted)
	p, ok := s.connections.enter(c)
	if !ok {
		s.connections.release(c)
		_ = accepted.Close()
		return
	}
	go func() {
		defer s.connections.leave(c)
		defer c.endAfterPanic()
		if p != nil {
			c.refuse(p, time.Now())
			return
		}
		c.serve()
	}()
}

func (s *Server) newConn(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, server: s}
	c.reading.set, c.reading.slack = accepted.SetReadDeadline, s.connections.slack
	c.writing.set, c.writing.slack = accepted.SetWriteDeadline, s.connections.slack
	s.acquire(c)
	return c
}

// acquire gives a connection its buffers.
func (s *Server) acquire(c *conn) {
	b, _ := s.connections.pool.Get().(*buffers)
	if b == nil {
		b = &buffers{br: bufio.NewReaderSize(nil, min(keptBytes, s.HTTP.HeaderMax)), bw: bufio.NewWriter(nil)}
	}
	b.ctx.Init2(c, nil, false)
	b.br.Reset(c)
	b.bw.Reset(c)
	c.buffers = b
}

// release returns the buffers of a connection to the pool, if it has any.
func (o *connections) release(c *conn) {
	if c.buffers == nil {
		return
	}
	c.reset()
	if c.br.Size() > keptBytes { // see grow
		c.buffers = nil
		return
	}
	c.ctx.Init2(nil, nil, false)
	c.br.Reset(nil)
	c.bw.Reset(nil)
	o.pool.Put(c.buffers)
	c.buffers = nil
}

// enter counts a connection as open. It returns a problem if the connection is beyond a
// limit, and false if it must be closed without an answer.
func (o *connections) enter(c *conn) (p *problem, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return nil, false
	}
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok && o.limits.PerAddress > 0 {
		c.from = tcp.AddrPort().Addr().Unmap()
	}
	switch {
	case len(o.open)-o.refused >= o.limits.Connections:
		p = &errConnections
	case c.from.IsValid() && o.from[c.from] >= o.limits.PerAddress:
		p = &errAddressConnections
	}
	if c.refused = p != nil; c.refused {
		if o.refused == refusedMax {
			return nil, false
		}
		o.refused++
	} else if c.from.IsValid() {
		o.from[c.from]++
	}
	o.open[c] = struct{}{}
	o.serving.Add(1)
	return p, true
}

// leave closes a connection that was served.
func (o *connections) leave(c *conn) {
	_ = c.Close()
	o.mu.Lock()
	delete(o.open, c)
	if c.refused {
		o.refused--
	} else if c.from.IsValid() {
		if o.from[c.from]--; o.from[c.from] == 0 {
			delete(o.from, c.from)
		}
	}
	o.mu.Unlock()
	o.release(c)
	o.serving.Done()
}

// Shutdown stops listening and returns when every request that was read is answered. The
// last answer of each connection has "Connection: close". A connection that waits for a
// request is closed a second after its last answer. When ctx ends first, Shutdown closes
// the remaining connections and returns the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	now := time.Now()
	o := s.connections
	o.mu.Lock()
	o.stopped = true
	for _, ln := range o.listeners {
		_ = ln.Close() // Serve returns errors of the listener
	}
	for c := range o.open {
		c.stop(now, o.wait)
	}
	o.mu.Unlock()
	done := make(chan struct{})
	go func() {
		o.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.answers.over.Stop()
		s.log.flush()
		return nil
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.open {
		_ = c.Close()
	}
	return ctx.Err()
}
