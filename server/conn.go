package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http/httputil"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Connections are served here and not by fasthttp's own server, for three reasons: heads
// and chunked bodies are read strictly, a stop answers every request that was read, and the
// memory that clients can use is bounded. fasthttp parses heads and writes answers.

const (
	bodyMaxBytes = batchBodyMax // the largest of all routes
	// keptBytes is the largest buffer that a connection keeps from one request to the next.
	keptBytes = 16 << 10
	// buffersKept is for how long a connection keeps its buffers without a request.
	buffersKept = time.Second

	// After a stop the rest of a request, or the next one, is waited for stopReadMax, and
	// a client may take stopWriteMax to read its answer.
	stopReadMax  = time.Second
	stopWriteMax = 5 * time.Second

	// A client that is refused may still be sending. If the connection were closed at once,
	// the client would get a reset in place of the answer. So what it sends is discarded.
	lingerMax      = 5 * time.Second
	lingerMaxBytes = 16 << 20
)

// conn is a connection of a client. One goroutine serves it. stop may be called from others.
type conn struct {
	net.Conn
	server   *Server
	from     netip.Addr // set if connections of one address are counted
	refused  bool       // it is beyond a limit and only gets a refusal
	*buffers            // nil while it rests
	first    [1]byte    // what ended its rest
	woken    bool       // first is not yet read

	reading deadline
	writing deadline
	resting atomic.Int64 // unix ns since when the connection waits for a request; 0 while it is at one
}

// buffers are what a connection needs while it is open.
type buffers struct {
	ctx fasthttp.RequestCtx
	br  *bufio.Reader
	bw  *bufio.Writer
}

// deadline is one of a connection. Moving it costs as much as finding the answer, so it is
// moved only before a read or write, and only if it is earlier than wished or later by more
// than slack.
type deadline struct {
	set   func(time.Time) error
	slack time.Duration
	wish  time.Time // for the goroutine that serves the connection

	mu     sync.Mutex // guards what is below
	stands time.Time
	end    time.Time // not to be passed; zero before a stop
}

// apply makes the deadline the wished one, or a little later.
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

// endBy moves the deadline to at, now and in future, unless it is earlier.
func (d *deadline) endBy(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end = at
	if d.stands.IsZero() || d.stands.After(at) {
		d.stands = at
		_ = d.set(at) // fails if the connection is closed
	}
}

// Read implements net.Conn. It first sends the answers that are in the buffer.
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

// stop bounds what the connection still reads: the rest of the request that it is at, or
// a request that arrives within wait of the last answer.
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
			c.refuse(p)
			return
		}
		if h.waited {
			began = time.Now()
		}
		c.server.handle(&c.ctx, began)
		if _, err := c.br.Discard(unread); err != nil || !c.answer(&h) {
			return
		}
	}
}

// awaitRequest waits for the first byte of a request and reports whether it came. When it
// did not come, the connection is closed without an answer: clients open connections in
// advance, and would take an answer for that to their next request.
func (c *conn) awaitRequest(timeout time.Duration) bool {
	for {
		if c.br.Buffered() == 0 && !c.rest(timeout) {
			return false
		}
		switch begin, _ := c.br.Peek(min(2, c.br.Buffered())); {
		case string(begin) == "\r\n": // some clients send an empty line after a body
			_, _ = c.br.Discard(2)
		case string(begin) != "\r":
			return true
		case c.fill() != nil:
			return false
		}
	}
}

// rest waits for something to arrive and reports whether it did. After buffersKept it
// releases the buffers of the connection until then.
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

// receive reads a request. It returns the number of its bytes that are still in the read
// buffer, which the body of the request then points into, or why the request is refused.
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
	if h.length > bodyMaxBytes {
		return 0, &errTooLarge
	}
	if h.length == 0 && !h.chunked {
		return 0, nil
	}
	if !h.http10 && c.ctx.Request.MayContinue() && c.br.Buffered() == 0 {
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
	case h.length <= c.br.Size():
		var err error
		if body, err = c.br.Peek(h.length); err != nil {
			return 0, unreadable(err)
		}
		unread = h.length
	default:
		if p := c.reserveBody(h.length); p != nil {
			return 0, p
		}
		body = make([]byte, h.length)
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
		if err := c.fill(); err != nil {
			return unreadable(err)
		}
	}
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

// unreadable returns the problem of a request that could not be read whole.
func unreadable(err error) *problem {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &errTimeout
	case errors.Is(err, bufio.ErrBufferFull):
		return &errHeadersTooLarge
	}
	return &errRequestMalformed
}

// answer sends the answer to a request and reports whether the connection stays open.
func (c *conn) answer(h *head) (open bool) {
	res := &c.ctx.Response
	if c.ctx.IsHead() {
		res.SkipBody = true
	}
	keep := !h.close && (!h.http10 || h.keepAlive) && !res.ConnectionClose()
	// Requests that were sent one after another without waiting, and are in the buffer,
	// are answered before the connection is closed.
	stopping := c.server.stopping.Load() && c.br.Buffered() == 0
	switch {
	case !keep || stopping:
		res.SetConnectionClose()
	case h.http10:
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

// beginAnswer sets the deadline of an answer that is about to be sent.
func (c *conn) beginAnswer() {
	now := time.Now()
	c.writing.wish = now.Add(c.server.HTTP.WriteTimeout)
	if c.server.stopping.Load() {
		c.writing.endBy(now.Add(stopWriteMax))
	}
}

// reset makes the buffers ready for the next request and releases what this one held.
func (c *conn) reset() {
	c.ctx.ResetUserValues()
	c.ctx.Request.Reset()
	c.ctx.Response.ReleaseBody(keptBytes)
	c.ctx.Response.Reset()
}

// refuse answers with a problem and ends the connection. It discards what else the client
// sent.
func (c *conn) refuse(p *problem) {
	c.server.refuse(&c.ctx, p)
	c.server.metrics.requests.WithLabelValues("none", strconv.Itoa(p.Status), string(tierNone)).Inc()
	c.ctx.Response.SetConnectionClose()
	c.ctx.Response.SkipBody = c.ctx.IsHead()
	c.beginAnswer()
	err := c.ctx.Response.Write(c.bw)
	c.reset()
	if err == nil && c.bw.Flush() == nil {
		c.linger()
	}
}

// linger ends the sending half of the connection, and discards for a while what the client
// still sends.
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
