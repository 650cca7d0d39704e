package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"companyscore/server/api"
)

// listener hands out connections that know whether they ever brought anything, and
// no more of them to one address than allowed.
type listener struct {
	net.Listener
	perAddress int // zero for no bound

	mu   sync.Mutex
	open map[netip.Addr]int
}

func newListener(ln net.Listener, perAddress int) *listener {
	return &listener{Listener: ln, perAddress: perAddress, open: make(map[netip.Addr]int)}
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
			return &conn{Conn: c}, nil
		}
		from := tcp.AddrPort().Addr().Unmap()
		if l.enter(from) {
			return &conn{Conn: c, closed: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		refuse(c)
	}
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
	began  bool   // at least one byte came; for the goroutine that reads
	closed func() // nil or to be called when it ends
}

// Read reads what the client sent.
func (c *conn) Read(p []byte) (int, error) {
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
