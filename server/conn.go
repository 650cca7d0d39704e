package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http/httputil"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// This file serves connections in place of fasthttp's server. It reads heads and chunked
// bodies strictly, answers every request that was read before a stop, and bounds the memory
// of clients. fasthttp still parses heads and writes answers.

const (
	bodyMaxBytes = batchBodyMax // the largest of all routes
	// keptBytes bounds the buffer that a connection keeps between requests.
	keptBytes = 16 << 10
	// buffersKept is the time after which an idle connection releases its buffers.
	buffersKept = time.Second

	// emptyLinesMax bounds the empty lines before a request. Some clients send one after a body.
	emptyLinesMax = 4

	// After a stop, stopReadMax bounds the wait for the rest of a request or for the next
	// one, and stopWriteMax bounds the write of an answer.
	stopReadMax  = time.Second
	stopWriteMax = 5 * time.Second

	// A refused client may still send data. Closing the connection at once would reset it
	// before the client reads the answer. So the server first discards the data, within
	// these limits.
	lingerMax      = 5 * time.Second
	lingerMaxBytes = 16 << 20
)

// conn is a connection of a client. One goroutine serves it. Only stop is safe to call from
// other goroutines.
type conn struct {
	net.Conn
	server   *Server
	from     netip.Addr // address of the client, if connections per address are limited
	refused  bool       // the connection exceeds a limit and only gets a refusal
	*buffers            // nil while the connection is idle
	first    [1]byte    // first byte after the idle time
	woken    bool       // Read has not returned first yet

	reading deadline
	writing deadline
	resting atomic.Int64 // start of the wait for a request in unix ns; 0 during a request
}

// buffers are the buffers of a connection that is not idle.
type buffers struct {
	ctx fasthttp.RequestCtx
	br  *bufio.Reader
	bw  *bufio.Writer
}

// deadline is the read or write deadline of a connection. Setting it costs as much as
// finding an answer. So it is set only before a read or write, and only if the current one
// is earlier than wish or later than wish by more than slack.
type deadline struct {
	set   func(time.Time) error
	slack time.Duration
	wish  time.Time // for the goroutine that serves the connection

	mu     sync.Mutex // guards the fields below
	stands time.Time  // the deadline that is set
	end    time.Time  // upper bound of the deadline; zero before a stop
}

// apply sets the deadline to wish, or up to slack later, and never after end.
func (d *deadline) apply() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	wish, slack := d.wish, d.slack
	if !d.end.IsZero() && (wish.IsZero() || wish.After(d.end)) {
		wish, slack = d.end, 0
	}
	if late := d.stands.Sub(wish); wish.IsZero() == d.stands.IsZero() && late >= 0 && late <= slack {
		return nil
	}
	d.stands = wish
	if !wish.IsZero() {
		d.stands = wish.Add(slack)
	}
	return d.set(d.stands)
}

// endBy sets the upper bound of the deadline. It moves a later deadline to at.
func (d *deadline) endBy(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end = at
	if d.stands.IsZero() || d.stands.After(at) {
		d.stands = at
		_ = d.set(at) // fails if the connection is closed
	}
}

// Read implements net.Conn. It first flushes the write buffer.
func (c *conn) Read(p []byte) (int, error) {
	if c.bw.Buffered() > 0 {
		if err := c.bw.Flush(); err != nil {
			return 0, err
		}
	}
	if c.woken && len(p) > 0 {
		c.woken = false
		return copy(p, c.first[:]), nil
	}
	if err := c.reading.apply(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.writing.apply(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// stop bounds the remaining reads and writes: the rest of the current request must arrive
// within wait, or the next request within wait after the last answer.
func (c *conn) stop(now time.Time, wait time.Duration) {
	last := now
	if resting := c.resting.Load(); resting != 0 {
		last = time.Unix(0, resting)
	}
	c.reading.endBy(last.Add(wait))
	c.writing.endBy(now.Add(stopWriteMax))
}

// serve answers the requests of the connection until it ends.
func (c *conn) serve() {
	for wait := c.server.HTTP.ReadTimeout; c.awaitRequest(wait); wait = c.server.HTTP.IdleTimeout {
		began := time.Now()
		c.resting.Store(0)
		c.reading.wish = began.Add(c.server.HTTP.ReadTimeout)
		var h head
		unread, p := c.receive(&h)
		if p != nil {
			c.refuse(p, began)
			return
		}
		if h.waited {
			began = time.Now()
		}
		c.server.handle(&c.ctx, began)
		if _, err := c.br.Discard(unread); err != nil || !c.answer() {
			return
		}
	}
}

// awaitRequest waits for the first byte of a request and reports whether it arrived. If it
// did not, the caller closes the connection without an answer. A client with an idle
// connection would take an answer for that of its next request.
func (c *conn) awaitRequest(timeout time.Duration) bool {
	for emptyLines := 0; ; {
		if c.br.Buffered() == 0 && !c.rest(timeout) {
			return false
		}
		switch begin, _ := c.br.Peek(min(2, c.br.Buffered())); {
		case emptyLines == emptyLinesMax: // receive refuses one more
			return true
		case string(begin) == "\r\n":
			emptyLines++
			_, _ = c.br.Discard(2)
		case string(begin) != "\r":
			return true
		case c.fill() != nil:
			return false
		}
	}
}

// rest waits for data and reports whether it arrived within timeout. After buffersKept it
// releases the buffers of the connection until data arrives.
func (c *conn) rest(timeout time.Duration) bool {
	now := time.Now()
	c.resting.Store(now.UnixNano())
	c.reading.wish = now.Add(min(timeout, buffersKept))
	err := c.fill()
	if err == nil || timeout <= buffersKept || !errors.Is(err, os.ErrDeadlineExceeded) || c.bw.Buffered() > 0 {
		return err == nil
	}
	c.server.connections.release(c)
	c.reading.wish = now.Add(timeout)
	if c.reading.apply() != nil {
		return false
	}
	if _, err := io.ReadFull(c.Conn, c.first[:]); err != nil {
		return false
	}
	c.server.acquire(c)
	c.woken = true
	return c.fill() == nil
}

// fill reads more into the buffer.
func (c *conn) fill() error {
	_, err := c.br.Peek(c.br.Buffered() + 1)
	return err
}

// receive reads a request, or returns the problem for which it is refused. unread is the
// number of body bytes still in the read buffer; the body of the request points to them.
func (c *conn) receive(h *head) (unread int, p *problem) {
	if p := c.scan(h); p != nil {
		return 0, p
	}
	if p := h.framing(); p != nil {
		return 0, p
	}
	buffered := c.br.Buffered()
	if err := c.ctx.Request.Header.Read(c.br); err != nil || buffered-c.br.Buffered() != h.checked {
		return 0, &errRequestMalformed
	}
	length := c.ctx.Request.Header.ContentLength() // negative without a length
	if length > bodyMaxBytes {
		return 0, &errTooLarge
	}
	if length <= 0 && !h.chunked {
		return 0, nil
	}
	if c.ctx.Request.MayContinue() && c.br.Buffered() == 0 {
		_, _ = c.bw.WriteString("HTTP/1.1 100 Continue\r\n\r\n") // an error stays in c.bw
	}
	h.waited = true
	var body []byte
	switch {
	case h.chunked:
		if body, p = c.chunks(); p != nil {
			return 0, p
		}
		c.ctx.Request.Header.SetContentLength(len(body))
	case length <= c.br.Size():
		var err error
		if body, err = c.br.Peek(length); err != nil {
			return 0, unreadable(err)
		}
		unread = length
	default:
		if p := c.reserveBody(length); p != nil {
			return 0, p
		}
		body = make([]byte, length)
		if _, err := io.ReadFull(c.br, body); err != nil {
			return 0, unreadable(err)
		}
	}
	c.ctx.Request.SetBodyRaw(body)
	return unread, nil
}

// scan reads until a head, or the lines after a chunked body, are complete.
func (c *conn) scan(h *head) *problem {
	for {
		buffered, _ := c.br.Peek(c.br.Buffered())
		switch complete, p := h.scan(buffered); {
		case p != nil:
			return p
		case complete:
			return nil
		}
		h.waited = true
		err := c.fill()
		if errors.Is(err, bufio.ErrBufferFull) && c.br.Size() < c.server.HTTP.HeaderMax {
			c.grow()
			err = c.fill()
		}
		if err != nil {
			return unreadable(err)
		}
	}
}

// grow replaces the full read buffer by one for the largest head. The connection keeps it until it is idle.
func (c *conn) grow() {
	buffered, _ := c.br.Peek(c.br.Buffered())
	c.br = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(buffered)), c), c.server.HTTP.HeaderMax)
}

// chunks reads a chunked body and discards its trailers.
func (c *conn) chunks() ([]byte, *problem) {
	chunks := httputil.NewChunkedReader(c.br)
	body, err := io.ReadAll(io.LimitReader(chunks, keptBytes+1))
	if err == nil && len(body) > keptBytes {
		if p := c.reserveBody(bodyMaxBytes); p != nil {
			return nil, p
		}
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(chunks, bodyMaxBytes+1-int64(len(body))))
		body = append(body, rest...)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	if len(body) > bodyMaxBytes {
		return nil, &errTooLarge
	}
	trailers := head{lines: 1} // they have no request line
	if p := c.scan(&trailers); p != nil {
		return nil, p
	}
	if _, err := c.br.Discard(trailers.checked); err != nil {
		return nil, unreadable(err)
	}
	return body, nil
}

// reserveBody reserves bytes for a request body until the request is answered.
func (c *conn) reserveBody(bytes int) *problem {
	ctx, cancel := context.WithTimeout(context.Background(), reserveMax)
	defer cancel()
	if c.server.bodies.Acquire(ctx, int64(bytes)) != nil {
		return &errAllBodies
	}
	c.ctx.SetUserValue("body", releaser(func() { c.server.bodies.Release(int64(bytes)) }))
	return nil
}

// releaser is a user value of a request. fasthttp closes user values when the request is
// answered.
type releaser func()

// Close implements io.Closer.
func (r releaser) Close() error {
	r()
	return nil
}

// unreadable returns the problem for an error while a request was read.
func unreadable(err error) *problem {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &errTimeout
	case errors.Is(err, bufio.ErrBufferFull):
		return &errHeadersTooLarge
	}
	return &errRequestMalformed
}

// endAfterPanic keeps a panic from ending the process. The connection ends without an answer, and its
// buffers are not used again.
func (c *conn) endAfterPanic() {
	p := recover()
	if p == nil {
		return
	}
	c.server.metrics.panics.Inc()
	c.server.logger.Error("connection ended by a panic", "panic", p, "stack", string(debug.Stack()))
	if c.buffers != nil {
		c.ctx.ResetUserValues() // releases what the request has reserved
		c.buffers = nil
	}
}

// answer sends the answer to a request and reports whether the connection stays open.
func (c *conn) answer() (open bool) {
	res := &c.ctx.Response
	if c.ctx.IsHead() {
		res.SkipBody = true
	}
	keep := !c.ctx.Request.Header.ConnectionClose() && !res.ConnectionClose()
	// Pipelined requests in the buffer are answered before the connection is closed.
	stopping := c.server.stopping.Load() && c.br.Buffered() == 0
	switch {
	case !keep || stopping:
		res.SetConnectionClose()
	case !c.ctx.Request.Header.IsHTTP11():
		res.Header.Set("Connection", "keep-alive")
	}
	c.beginAnswer()
	if res.Write(c.bw) != nil {
		return false
	}
	c.reset()
	if keep && !stopping {
		return true
	}
	if c.bw.Flush() == nil && (keep || c.br.Buffered() > 0) {
		c.linger()
	}
	return false
}

// beginAnswer sets the write deadline of the next answer.
func (c *conn) beginAnswer() {
	now := time.Now()
	c.writing.wish = now.Add(c.server.HTTP.WriteTimeout)
	if c.server.stopping.Load() {
		c.writing.endBy(now.Add(stopWriteMax))
	}
}

// reset prepares the buffers for the next request and releases the memory of this one.
func (c *conn) reset() {
	c.ctx.ResetUserValues()
	c.ctx.Request.Reset()
	c.ctx.Response.ReleaseBody(keptBytes)
	c.ctx.Response.Reset()
}

// refuse answers a request that began to arrive at the instant began with a problem and ends the
// connection. It discards further data of the client.
func (c *conn) refuse(p *problem, began time.Time) {
	c.server.refuse(&c.ctx, p, began)
	c.ctx.Response.SetConnectionClose()
	c.ctx.Response.SkipBody = c.ctx.IsHead()
	c.beginAnswer()
	err := c.ctx.Response.Write(c.bw)
	c.reset()
	if err == nil && c.bw.Flush() == nil {
		c.linger()
	}
}

// linger closes the sending half of the connection. It then discards data of the client, for
// lingerMax and lingerMaxBytes at most.
func (c *conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	now := time.Now()
	c.reading.wish = now.Add(lingerMax)
	if c.server.stopping.Load() {
		c.reading.endBy(now.Add(stopReadMax))
	}
	_, _ = io.CopyN(io.Discard, c, lingerMaxBytes)
}
