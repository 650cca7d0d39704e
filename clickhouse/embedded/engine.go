package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// session is the state a connection was opened with. It never changes during the connection's life, so two requests share a
// connection only if they asked for the same state, and nothing of one can be seen by the other.
type session struct {
	database string
	settings string // "name = 'value', ..." in name order
}

// engine is the library with one data directory open, and the connections to it.
type engine struct {
	lib  *library
	args []string
}

// conn is one connection of the library. It runs one statement at a time.
type conn struct {
	engine  *engine
	handle  **cConn
	session session
}

// open connects and puts the connection into the given state.
func (e *engine) open(base string, s session) (*conn, error) {
	handle := e.lib.open(e.args...)
	if handle == nil || *handle == nil {
		return nil, errors.New("open engine: connection refused by libchdb")
	}
	c := &conn{e, handle, s}
	var setup []string
	if s.database != "" {
		setup = append(setup, "USE "+quoteName(s.database))
	}
	if base != "" {
		setup = append(setup, "SET "+base)
	}
	if s.settings != "" {
		setup = append(setup, "SET "+s.settings)
	}
	for _, q := range setup {
		if _, err := c.query(q, "Null", nil); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *conn) close() { c.engine.lib.closeConn(c.handle) }

// query runs a statement and returns its whole output.
func (c *conn) query(text, format string, params []param) ([]byte, error) {
	lib := c.engine.lib
	r := lib.run(lib.query, *c.handle, text, format, params)
	if r == nil {
		return nil, errors.New("query engine: no result from libchdb")
	}
	defer lib.destroy(r)
	if err := lib.err(r); err != nil {
		return nil, err
	}
	return lib.bytes(r), nil
}

func (l *library) err(r *cResult) error {
	if msg := cString(l.failure(r)); msg != "" {
		return parseException(msg)
	}
	return nil
}

// bytes copies the result's output out of C memory.
func (l *library) bytes(r *cResult) []byte {
	n := l.length(r)
	p := l.buffer(r)
	if p == nil || n == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice(p, n)...)
}

// pool lends connections, at most size at a time, and keeps the idle ones for requests with the same session.
type pool struct {
	engine *engine
	base   string // settings of every session
	slots  chan struct{}

	mu     sync.Mutex
	idle   []*conn // longest idle first
	closed bool
}

func newPool(e *engine, size int, base string) *pool {
	return &pool{engine: e, base: base, slots: make(chan struct{}, size)}
}

// get waits for a free slot until ctx ends. The caller gives the connection back with put.
func (p *pool) get(ctx context.Context, s session) (*conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, evicted := p.take(s)
	if evicted != nil {
		evicted.close()
	}
	if c != nil {
		return c, nil
	}
	c, err := p.engine.open(p.base, s)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return c, nil
}

// take returns an idle connection of the session, or one to close in favour of a new one when there are as many as slots.
func (p *pool) take(s session) (match, evicted *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		if c := p.idle[i]; c.session == s {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			return c, nil
		}
	}
	if len(p.idle) > 0 && len(p.idle)+len(p.slots) > cap(p.slots) {
		evicted = p.idle[0]
		p.idle = p.idle[1:]
	}
	return nil, evicted
}

// put gives c back; one whose session may have changed is closed instead of kept.
func (p *pool) put(c *conn, reusable bool) {
	defer func() { <-p.slots }()
	p.mu.Lock()
	keep := reusable && !p.closed
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.close()
	}
}

// close waits for lent connections and closes all.
func (p *pool) close() {
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.close()
	}
	p.idle = nil
}

var nameQuoter = strings.NewReplacer("\\", "\\\\", "`", "\\`")

// quoteName quotes an identifier.
func quoteName(name string) string { return "`" + nameQuoter.Replace(name) + "`" }

var stringQuoter = strings.NewReplacer("\\", "\\\\", "'", "\\'")

// quoteString quotes a string literal.
func quoteString(s string) string { return "'" + stringQuoter.Replace(s) + "'" }

// setting renders one assignment for SET.
func setting(name, value string) string {
	return fmt.Sprintf("%s = %s", quoteName(name), quoteString(value))
}
