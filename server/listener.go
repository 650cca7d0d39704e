package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"companyscore/internal/config"
	"companyscore/server/api"
)

// listener hands out connections that know whether they ever brought anything, and
// no more of them to one address than allowed.
type listener struct {
	net.Listener
	perAddress int           // zero for no bound
	slack      time.Duration // by which a deadline may be late

	mu   sync.Mutex
	open map[netip.Addr]int
}

// slackMax bounds by how much a deadline of a connection may be late.
const slackMax = time.Second

func newListener(ln net.Listener, limits config.HTTP) *listener {
	shortest := min(limits.ReadTimeout, limits.WriteTimeout, limits.IdleTimeout)
	return &listener{Listener: ln, perAddress: limits.PerAddress, slack: min(shortest/8, slackMax), open: make(map[netip.Addr]int)}
}

// Accept returns the next connection that may be served; it is a *conn.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.RemoteAddr().(*net.TCPAddr)
		if !ok || l.perAddress == 0 {
			return l.wrap(c, nil), nil
		}
		from := tcp.AddrPort().Addr().Unmap()
		if l.enter(from) {
			return l.wrap(c, sync.OnceFunc(func() { l.leave(from) })), nil
		}
		refuse(c)
	}
}

func (l *listener) wrap(c net.Conn, closed func()) *conn {
	return &conn{Conn: c, closed: closed, reading: deadline{set: c.SetReadDeadline, slack: l.slack}, writing: deadline{set: c.SetWriteDeadline, slack: l.slack}}
}

func (l *listener) enter(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from] >= l.perAddress {
		return false
	}
	l.open[from]++
	return true
}

func (l *listener) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from]--; l.open[from] <= 0 {
		delete(l.open, from)
	}
}

// refuse answers a connection too many. What is written fits into the buffer of a
// socket that is new, so nobody waits for the other end.
func refuse(c net.Conn) {
	body, err := json.Marshal(api.Error{Code: "too many connections", Message: "This address has as many connections open as it may. Use them for more than one request."})
	if err == nil {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	_ = c.Close()
}

// conn is a connection of a client.
type conn struct {
	net.Conn
	began   bool   // at least one byte came; for the goroutine that reads
	closed  func() // nil or to be called when it ends
	reading deadline
	writing deadline
}

// deadline is one of a connection. The server moves each of them with every request,
// which costs as much as finding the answer; so a move is made when it matters: when
// something is read or written, and not if the one that stands is later by no more than slack.
type deadline struct {
	set    func(time.Time) error
	slack  time.Duration
	wish   time.Time
	stands time.Time
}

// apply has the deadline be the one that is wished, or a little later.
func (d *deadline) apply() error {
	if late := d.stands.Sub(d.wish); d.wish.IsZero() == d.stands.IsZero() && late >= 0 && late <= d.slack {
		return nil
	}
	d.stands = d.wish
	if !d.wish.IsZero() {
		d.stands = d.wish.Add(d.slack)
	}
	return d.set(d.stands)
}

// SetReadDeadline bounds all reading from now on, to the second. Like all methods but
// Close it is for the goroutine that serves the connection.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.reading.wish = t
	return nil
}

// SetWriteDeadline is the same for writing.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writing.wish = t
	return nil
}

// SetDeadline is both at once.
func (c *conn) SetDeadline(t time.Time) error {
	c.reading.wish, c.writing.wish = t, t
	return nil
}

// Write sends to the client.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.writing.apply(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Read reads what the client sent.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.reading.apply(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	c.began = c.began || n > 0
	return n, err
}

// Close ends the connection.
func (c *conn) Close() error {
	if c.closed != nil {
		c.closed()
	}
	return c.Conn.Close()
}
