package load

import (
	"container/heap"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"companyscore/bench/processor"
)

const (
	// waitingMax bounds the requests of one loop that wait for a connection. Requests
	// beyond it fail at once.
	waitingMax = 1 << 20
	checkEvery = 100 * time.Millisecond // for requests that take too long, and for the end of ctx
	retryAfter = 50 * time.Millisecond  // before a connection is tried again
	sleepMax   = 50 * time.Millisecond
	readBytes  = 64 << 10
	eventsMax  = 16 // read at once, so that due requests do not wait
)

// pending is a request that is due and not answered. Instants are nanoseconds since the
// start of the load.
type pending struct {
	intended, taken, sent int64
	request               Request
	follow                bool // made by Source.Resume
}

type connState uint8

const (
	connDown connState = iota
	connOpening
	connUp
)

// conn is one connection of a loop.
type conn struct {
	index   int
	fd      int
	state   connState
	free    bool // is in loop.free
	retryAt int64
	out     []byte // out[outAt:] is not written yet
	outAt   int
	under   []pending // in flight, oldest first
	reader  reader
}

// loop is one thread of the generator. Only that thread uses its fields.
type loop struct {
	cfg       Config
	index     int
	address   unix.Sockaddr
	family    int
	poller    *poller
	source    Source
	schedule  *schedule // nil in a closed loop
	conns     []*conn
	free      ring[*conn]
	waiting   ring[pending]
	follow    followUps
	exhausted bool // the source has no more requests
	buffer    []byte
	start     time.Time
	collected *collector

	warm, end int64 // begin and end of the measured time
	classes   []*classOf
	names     []string // of outcomes
	interval  *interval
	pacing    *hdrhistogram.Histogram
	queued    *hdrhistogram.Histogram
	planned   int64
	sent      int64
	answered  int64
	reconnect int64
	last      int64 // instant of the last answer
	priority  Priority
	cpu       time.Duration
	gone      int64 // requests in flight or waiting
}

// classOf collects one class. The outcome is a status unless it is 200, else an index into names.
type classOf struct {
	op, status, name int
	headline         bool
	bytes            int64
	latency, service *hdrhistogram.Histogram
}

func newLoop(cfg Config, i int, address *net.TCPAddr, collected *collector) (*loop, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	l := &loop{
		cfg: cfg, index: i, poller: p, source: cfg.Source(i, cfg.Loops), buffer: make([]byte, readBytes), collected: collected,
		warm: int64(cfg.Warmup), end: int64(cfg.Warmup + cfg.Duration), pacing: NewHistogram(), queued: NewHistogram(),
	}
	if ip := address.IP.To4(); ip != nil {
		l.family, l.address = unix.AF_INET, &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte(ip)}
	} else if address.IP == nil {
		l.family, l.address = unix.AF_INET, &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte{127, 0, 0, 1}}
	} else {
		l.family, l.address = unix.AF_INET6, &unix.SockaddrInet6{Port: address.Port, Addr: [16]byte(address.IP.To16())}
	}
	if cfg.Rate > 0 {
		l.schedule = newSchedule(cfg.Rate, cfg.Arrivals, cfg.Seed, i, cfg.Loops)
	}
	n := cfg.Connections / cfg.Loops
	if i < cfg.Connections%cfg.Loops {
		n++
	}
	for index := range n {
		c := &conn{index: index, fd: -1, under: make([]pending, 0, cfg.Pipeline)}
		c.reader.keep = true
		l.conns = append(l.conns, c)
	}
	return l, nil
}

func (l *loop) close() {
	for _, c := range l.conns {
		l.hangUp(c)
	}
	l.poller.close()
}

func (l *loop) now() int64 { return int64(time.Since(l.start)) }

// connectAll opens the connections. It returns an error before anything is measured if
// the server is not reachable.
func (l *loop) connectAll(ctx context.Context) error {
	l.start = time.Now()
	for _, c := range l.conns {
		if err := l.connect(c); err != nil {
			return fmt.Errorf("connect to %s: %w", l.cfg.Address, err)
		}
	}
	deadline := time.Now().Add(l.cfg.Timeout)
	ready := make([]readiness, eventsMax)
	for l.free.len() < len(l.conns) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("connect to %s: %d of %d connections within %s", l.cfg.Address, l.free.len(), len(l.conns), l.cfg.Timeout)
		}
		n, err := l.poller.wait(sleepMax, ready)
		if err != nil {
			return err
		}
		for _, r := range ready[:n] {
			if c := l.conns[r.tag]; c.state == connOpening {
				if err := l.opened(c); err != nil {
					return fmt.Errorf("connect to %s: %w", l.cfg.Address, err)
				}
			}
		}
	}
	l.reconnect = 0
	return nil
}

// connect begins to open a connection.
func (l *loop) connect(c *conn) error {
	fd, err := unix.Socket(l.family, unix.SOCK_STREAM, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.Connect(fd, l.address); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return os.NewSyscallError("connect", err)
	}
	c.fd, c.state, c.out, c.outAt = fd, connOpening, c.out[:0], 0
	c.reader.reset()
	l.reconnect++
	return l.poller.add(fd, c.index)
}

// opened checks whether a connection is established and releases it for requests.
func (l *loop) opened(c *conn) error {
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return os.NewSyscallError("connect", err)
	}
	if _, err := unix.Getpeername(c.fd); err != nil {
		return nil // not yet
	}
	c.state = connUp
	l.release(c)
	return nil
}

func (l *loop) hangUp(c *conn) {
	if c.fd >= 0 {
		l.poller.remove(c.fd)
		unix.Close(c.fd)
		c.fd = -1
	}
	c.state = connDown
}

// run sends the load. It returns when all requests are answered or have failed.
func (l *loop) run(ctx context.Context, start time.Time) error {
	runtime.LockOSThread() // never unlocked: the thread ends with the loop, and its priority with it
	if n := len(l.cfg.Processors); n > 0 {
		processor.Keep(l.cfg.Processors[l.index%n])
	}
	l.start, l.priority = start, prepareThread(l.cfg.Priority)
	l.interval = newInterval(1)
	next := int64(0)
	if l.schedule != nil {
		next = l.schedule.next()
	}
	var cpuAt, cpuEnd time.Duration
	warmed, measured := false, false
	check := int64(0)
	ready := make([]readiness, eventsMax)
	for {
		now := l.now()
		if !warmed && now >= l.warm {
			warmed, cpuAt = true, threadCPU()
		}
		if warmed && !measured && now >= l.end {
			measured, cpuEnd = true, threadCPU()
		}
		if now >= l.interval.end {
			l.turnInterval(now)
		}
		if now >= check {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.checkConns(now)
			check = now + int64(checkEvery)
		}
		// Take up what is due: follow-up requests and those of the schedule.
		for len(l.follow) > 0 && l.follow[0].at <= now {
			f := heap.Pop(&l.follow).(followUp)
			l.take(pending{intended: f.at, request: f.request, follow: true}, now)
			now = l.now()
		}
		if l.schedule != nil {
			for next <= now && next < l.end && !l.exhausted {
				l.take(pending{intended: next}, now)
				next = l.schedule.next()
				now = l.now()
			}
		} else if now < l.end {
			for l.free.len() > 0 && !l.exhausted {
				l.take(pending{intended: now}, now)
				now = l.now()
			}
		}
		over := now >= l.end || l.exhausted
		if over && (l.gone == 0 && len(l.follow) == 0 || now >= l.end+int64(l.cfg.Drain)) {
			break
		}
		// The sleep ends when a request is due or a socket is ready.
		wake := min(now+int64(sleepMax), check, l.interval.end)
		if l.schedule != nil && next < l.end && !l.exhausted {
			wake = min(wake, next-int64(l.cfg.Spin))
		}
		if len(l.follow) > 0 {
			wake = min(wake, l.follow[0].at)
		}
		n, err := l.poller.wait(time.Duration(wake-now), ready)
		if err != nil {
			return err
		}
		for _, r := range ready[:n] {
			l.ready(l.conns[r.tag], r)
		}
	}
	if !measured {
		cpuEnd = threadCPU()
	}
	l.cpu = cpuEnd - cpuAt
	l.giveUp()
	l.turnInterval(l.now())
	return nil
}

// take sends a request that is due, or queues it until a connection is free.
func (l *loop) take(p pending, now int64) {
	p.taken = now
	if l.measures(p) {
		l.planned++
		if !p.follow && l.schedule != nil {
			l.record(l.pacing, now-p.intended)
			l.record(l.interval.pacing, now-p.intended)
		}
	}
	if l.free.len() == 0 {
		if l.waiting.len() >= waitingMax {
			l.fail(p, Unsent, now)
			return
		}
		l.gone++
		l.waiting.push(p)
		return
	}
	l.gone++
	c := l.free.pop()
	c.free = false
	l.send(c, p)
	l.release(c)
}

func (l *loop) measures(p pending) bool { return p.intended >= l.warm && p.intended < l.end }

// send writes a request to a connection with room for it.
func (l *loop) send(c *conn, p pending) {
	if c.outAt == len(c.out) {
		c.out, c.outAt = c.out[:0], 0
	}
	if p.follow {
		c.out, p.request = l.source.Resume(c.out, p.request)
	} else {
		var ok bool
		if c.out, p.request, ok = l.source.Next(c.out); !ok {
			l.exhausted = true
			l.gone--
			if l.measures(p) {
				l.planned--
			}
			return
		}
	}
	p.sent = l.now()
	if l.measures(p) {
		l.sent++
		l.record(l.queued, p.sent-p.taken)
	}
	l.interval.sent++
	if len(c.under) == 0 {
		c.reader.keep = p.request.Watch
	}
	c.under = append(c.under, p)
	l.flush(c)
}

// release sends waiting requests on a connection that has room, and then marks it free.
func (l *loop) release(c *conn) {
	for c.state == connUp && len(c.under) < l.cfg.Pipeline {
		if l.waiting.len() == 0 {
			if !c.free {
				c.free = true
				l.free.push(c)
			}
			return
		}
		l.send(c, l.waiting.pop())
	}
}

// flush writes the output of a connection as far as the socket accepts it.
func (l *loop) flush(c *conn) {
	for c.outAt < len(c.out) {
		n, errno := writeSocket(c.fd, c.out[c.outAt:])
		switch errno {
		case 0:
			c.outAt += n
		case unix.EINTR:
		case unix.EAGAIN:
			l.poller.wantOut(c.fd)
			return
		default:
			l.drop(c, Disconnected)
			return
		}
	}
}

// ready handles an event of a connection.
func (l *loop) ready(c *conn, r readiness) {
	switch c.state {
	case connOpening:
		if l.opened(c) != nil {
			l.drop(c, Disconnected)
		}
		return
	case connDown:
		return
	}
	if r.out && c.outAt < len(c.out) {
		l.flush(c)
	}
	for r.in && c.state == connUp {
		n, errno := readSocket(c.fd, l.buffer)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return
		case errno != 0 || n == 0:
			l.drop(c, Disconnected)
			return
		}
		if !l.read(c, l.buffer[:n]) {
			return
		}
		if n < len(l.buffer) && !r.over {
			return // all is read; the poller reports more
		}
	}
}

// read handles received bytes and reports whether the connection is still open.
func (l *loop) read(c *conn, data []byte) bool {
	now := l.now()
	for len(data) > 0 {
		if len(c.under) == 0 {
			l.drop(c, Garbled) // an answer without a request
			return false
		}
		used, done, err := c.reader.feed(data)
		if err != nil {
			l.drop(c, Garbled)
			return false
		}
		data = data[used:]
		if !done {
			break
		}
		p := c.under[0]
		c.under = append(c.under[:0], c.under[1:]...)
		if len(c.under) > 0 {
			c.reader.keep = c.under[0].request.Watch
		}
		l.complete(p, &c.reader, now)
		if c.reader.closes {
			l.drop(c, Disconnected)
			return false
		}
	}
	l.release(c)
	return c.state == connUp
}

// complete counts an answer.
func (l *loop) complete(p pending, r *reader, now int64) {
	l.gone--
	l.last = now
	class := l.class(p.request.Op, &r.answer)
	l.interval.answered++
	if class.headline {
		l.record(l.interval.latency, now-p.intended)
	}
	if l.measures(p) {
		l.answered++
		class.bytes += r.size
		l.record(class.latency, now-p.intended)
		l.record(class.service, now-p.sent)
	}
	r.size = 0
	if p.request.Watch {
		if pause, again := l.source.Answered(p.request, r.answer); again {
			heap.Push(&l.follow, followUp{at: now + int64(pause), request: p.request})
		}
	}
}

// fail counts a request without an answer. Its latency is the time until now.
func (l *loop) fail(p pending, outcome string, now int64) {
	l.interval.failed++
	if p.request.Watch {
		l.source.Answered(p.request, Answer{}) // it ends here
	}
	if !l.measures(p) {
		return
	}
	class := l.classNamed(p.request.Op, 0, l.name(outcome))
	l.record(class.latency, now-p.intended)
	l.record(class.service, now-max(p.sent, p.taken))
}

// drop closes a connection and fails its requests in flight. The first reconnect is
// immediate; further ones wait retryAfter until one succeeds.
func (l *loop) drop(c *conn, outcome string) {
	was := c.state
	l.hangUp(c)
	now := l.now()
	for _, p := range c.under {
		l.gone--
		l.fail(p, outcome, now)
	}
	c.under = c.under[:0]
	if c.free {
		l.free.remove(c)
		c.free = false
	}
	c.retryAt = now
	if was != connUp {
		c.retryAt += int64(retryAfter)
	}
	if c.retryAt <= now && l.connect(c) != nil {
		l.hangUp(c)
		c.retryAt = now + int64(retryAfter)
	}
}

// checkConns fails requests that exceed the timeout and reopens closed connections.
func (l *loop) checkConns(now int64) {
	for _, c := range l.conns {
		if len(c.under) > 0 && now-c.under[0].sent > int64(l.cfg.Timeout) {
			l.drop(c, TimedOut)
		}
		if c.state == connDown && now >= c.retryAt && l.connect(c) != nil {
			l.hangUp(c)
			c.retryAt = now + int64(retryAfter)
		}
	}
}

// giveUp fails all requests that are unanswered at the end.
func (l *loop) giveUp() {
	now := l.now()
	for _, c := range l.conns {
		for _, p := range c.under {
			l.fail(p, TimedOut, now)
		}
		c.under = c.under[:0]
	}
	for l.waiting.len() > 0 {
		l.fail(l.waiting.pop(), Unsent, now)
	}
}

// record adds a duration to a histogram. A duration beyond its range counts as its
// maximum.
func (l *loop) record(h *hdrhistogram.Histogram, ns int64) {
	if h.RecordValue(max(ns, 0)) != nil {
		_ = h.RecordValue(h.HighestTrackableValue())
	}
}

// class returns the class of an answer.
func (l *loop) class(op int, a *Answer) *classOf {
	name := -1
	if a.Status == 200 && len(a.Timing) > 0 {
		name = l.nameOf(a.Timing)
	}
	return l.classNamed(op, a.Status, name)
}

func (l *loop) classNamed(op, status, name int) *classOf {
	if name >= 0 {
		status = 0
	}
	for _, c := range l.classes {
		if c.op == op && c.status == status && c.name == name {
			return c
		}
	}
	c := &classOf{op: op, status: status, name: name, latency: NewHistogram(), service: NewHistogram()}
	key := l.key(c)
	c.headline = key.Op == l.cfg.Headline.Op && (l.cfg.Headline.Outcome == "" || l.cfg.Headline.Outcome == key.Outcome)
	l.classes = append(l.classes, c)
	return c
}

func (l *loop) key(c *classOf) Key {
	if c.name >= 0 {
		return Key{l.cfg.Ops[c.op], l.names[c.name]}
	}
	return Key{l.cfg.Ops[c.op], strconv.Itoa(c.status)}
}

// namesMax bounds the number of outcomes taken from Server-Timing.
const namesMax = 32

// nameOf returns the index of an outcome. It allocates no string for a known one.
func (l *loop) nameOf(text []byte) int {
	for i, name := range l.names {
		if string(text) == name {
			return i
		}
	}
	if len(l.names) >= namesMax {
		return l.name("other")
	}
	l.names = append(l.names, string(text))
	return len(l.names) - 1
}

func (l *loop) name(text string) int {
	for i, name := range l.names {
		if text == name {
			return i
		}
	}
	l.names = append(l.names, text)
	return len(l.names) - 1
}

// followUp is a request that follows from an answer.
type followUp struct {
	at      int64
	request Request
}

// followUps is a heap, earliest first.
type followUps []followUp

func (f followUps) Len() int           { return len(f) }
func (f followUps) Less(i, j int) bool { return f[i].at < f[j].at }
func (f followUps) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *followUps) Push(x any)        { *f = append(*f, x.(followUp)) }
func (f *followUps) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

// ring is a queue that grows.
type ring[T comparable] struct {
	items []T
	head  int
	size  int
}

func (r *ring[T]) len() int { return r.size }

func (r *ring[T]) push(x T) {
	if r.size == len(r.items) {
		grown := make([]T, max(64, 2*len(r.items)))
		for i := range r.size {
			grown[i] = r.items[(r.head+i)%len(r.items)]
		}
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.size)%len(r.items)] = x
	r.size++
}

func (r *ring[T]) pop() T {
	x := r.items[r.head]
	var none T
	r.items[r.head] = none
	r.head = (r.head + 1) % len(r.items)
	r.size--
	return x
}

// remove removes x from any position.
func (r *ring[T]) remove(x T) {
	for range r.size {
		if y := r.pop(); y != x {
			r.push(y)
		}
	}
}
