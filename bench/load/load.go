// Package load sends HTTP requests at a rate fixed in advance and measures how long
// each takes to be answered, counted from the instant at which it was meant to be
// sent. A generator that waits for one answer before it asks the next question
// leaves out the questions that a stalled server would have got meanwhile; this one
// does not. It can also keep its connections busy all the time, to find out how much
// a server can do.
//
// One loop is one thread with its own connections: it sleeps in the kernel until the
// next request is due or an answer is there. Sockets are read and written directly,
// without the network poller of the Go runtime, and nothing is allocated for a
// request, so that one thread makes some hundred thousand requests a second.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Arrivals says how the instants of requests are chosen.
type Arrivals string

const (
	// Constant spaces requests evenly.
	Constant Arrivals = "constant"
	// Poisson draws the gaps from an exponential distribution, as calls of many
	// independent callers arrive.
	Poisson Arrivals = "poisson"
)

// Priority is how the threads of loops are scheduled. All but Normal take privileges.
type Priority string

const (
	// Normal is as any other thread.
	Normal Priority = "normal"
	// High is a nice(1) of -10. Where Linux groups threads by session (autogroup), that
	// counts among the programs of one session only.
	High Priority = "high"
	// RealTime is the class of threads that run before all ordinary ones, SCHED_RR. It is for
	// machines busy with other work than the answers; where the generator itself takes much
	// of a processor it keeps the server from it.
	RealTime Priority = "real-time"
)

// Priorities lists all, lowest first.
var Priorities = []Priority{Normal, High, RealTime}

// Config describes one load. Address, Source and Duration are required.
type Config struct {
	// Address is host:port of the server. It is spoken to in plain HTTP/1.1.
	Address string
	// Source returns the requests of loop number i of n.
	Source func(i, n int) Source
	// Ops names the kinds of requests, by Request.Op.
	Ops []string
	// Rate is the number of requests a second of all loops together. Zero keeps
	// every connection busy (closed loop).
	Rate     float64
	Arrivals Arrivals // zero: Constant
	Seed     uint64   // of the arrivals
	// Duration is how long is measured, after Warmup of the same load.
	Duration, Warmup time.Duration
	// Drain bounds how long answers are waited for at the end; zero means Timeout.
	Drain time.Duration
	// Timeout is how long one request may take; zero means 10 s.
	Timeout time.Duration
	// Connections is the number of connections of all loops together; zero means 64.
	Connections int
	// Pipeline is how many requests may be in flight on one connection; zero means 1.
	Pipeline int
	// Loops is the number of threads; zero means 1.
	Loops int
	// Processors are those that loops run on, in turn; nil leaves it to the system.
	Processors []int
	// Priority is asked for; zero means Normal. The result says what was granted.
	Priority Priority
	// Spin is how long before a request is due the loop stops sleeping and watches
	// the clock.
	Spin time.Duration
	// Headline is the class whose latency is kept second by second.
	Headline Key
	// OnInterval is called once a second with what happened in it, from one goroutine.
	OnInterval func(Interval)
}

// Key names a class of answers: the kind of the request, and what came back. That is
// the name in the Server-Timing header for a 200, else the status as a number, or
// one of the failures. An empty Outcome stands for every answer to Op.
type Key struct{ Op, Outcome string }

func (k Key) String() string { return k.Op + " " + k.Outcome }

// Failures: outcomes of requests that were not answered.
const (
	TimedOut     = "timeout"
	Disconnected = "disconnected"
	Garbled      = "garbled" // the answer was no HTTP
	Unsent       = "unsent"  // no connection was free until the end
)

// Failed reports whether k is of requests that were not answered.
func (k Key) Failed() bool {
	return k.Outcome == TimedOut || k.Outcome == Disconnected || k.Outcome == Garbled || k.Outcome == Unsent
}

// Request is one request that a source made.
type Request struct {
	Op int // index into Config.Ops
	// Watch has Source.Answered called with the answer.
	Watch bool
	// Slot is the source's own.
	Slot uint64
}

// Answer is what came back. Its bytes are valid during the call only.
type Answer struct {
	Status int
	Timing []byte // the first name in the Server-Timing header
	ETag   []byte
	Body   []byte // of watched requests, at most 1 MB of it
}

// Source makes the requests of one loop, and is called by that loop only.
type Source interface {
	// Next appends a request to dst. It reports false when there are no more.
	Next(dst []byte) ([]byte, Request, bool)
	// Answered is told of the answer to a watched request, with status 0 if none came.
	// With again, Resume is called after the pause for a request that follows from
	// the answer.
	Answered(r Request, a Answer) (pause time.Duration, again bool)
	// Resume appends the request that follows from r.
	Resume(dst []byte, r Request) ([]byte, Request)
}

// Class is what was measured of one class of answers.
type Class struct {
	Key
	Bytes int64 // of heads and bodies
	// Latency is counted from when the request was meant to be sent, Service from
	// when it was sent. Both are in nanoseconds.
	Latency, Service *hdrhistogram.Histogram
}

// Result is what was measured. Requests count by when they were meant to be sent.
type Result struct {
	Elapsed   time.Duration // what was measured of the load
	Planned   int64         // requests that were due, follow-ups included
	Sent      int64
	Answered  int64
	Classes   []Class
	Intervals []Interval
	// Thirds holds the latency of the headline class in the first and the last
	// third of the time.
	First, Last *hdrhistogram.Histogram
	// Pacing is how late the loops took up requests that were due: the generator's
	// own delay. Waiting is how long these then waited for a free connection.
	Pacing, Waiting *hdrhistogram.Histogram
	Reconnects      int64
	// CPU is what the loops used while they were measured, Loops how many they were.
	CPU      time.Duration
	Loops    int
	Priority Priority // that the loops ran with
}

// Interval is what happened in one second.
type Interval struct {
	At       time.Duration // end of the interval, since the start of the load
	Measured bool          // false during the warm-up
	Sent     int64
	Answered int64
	Failed   int64
	Waiting  int64 // requests without a connection at its end
	// Of the headline class, in nanoseconds; zero without an answer.
	Headline      int64
	P50, P99, Max int64
	PacingP99     int64
}

// NewHistogram returns a histogram of nanoseconds up to two minutes, exact to three figures.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(100, int64(2*time.Minute), 3)
}

// Validate joins all faults of a Config.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	_, _, err := net.SplitHostPort(c.Address)
	fault(err != nil, "address %q: write host:port", c.Address)
	fault(c.Source == nil, "there is no source of requests")
	fault(len(c.Ops) == 0, "there are no kinds of requests")
	fault(c.Rate < 0 || c.Rate > 10_000_000, "rate %g: up to 10,000,000 a second, 0 for as many as possible", c.Rate)
	fault(c.Arrivals != "" && c.Arrivals != Constant && c.Arrivals != Poisson, "arrivals %q: constant or poisson", c.Arrivals)
	fault(c.Duration <= 0, "duration %s: more than nothing", c.Duration)
	fault(c.Warmup < 0 || c.Drain < 0 || c.Timeout < 0, "times are not negative")
	fault(c.Connections < 0 || c.Connections > 50_000, "connections %d: 1 to 50,000", c.Connections)
	fault(c.Pipeline < 0 || c.Pipeline > 1024, "pipeline %d: 1 to 1024", c.Pipeline)
	fault(c.Loops < 0 || c.Loops > 256, "loops %d: 1 to 256", c.Loops)
	fault(c.Loops > 0 && c.Connections > 0 && c.Loops > c.Connections, "%d loops share %d connections: each needs one", c.Loops, c.Connections)
	return errors.Join(faults...)
}

func (c *Config) setDefaults() {
	if c.Arrivals == "" {
		c.Arrivals = Constant
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Drain == 0 {
		c.Drain = c.Timeout
	}
	if c.Connections == 0 {
		c.Connections = 64
	}
	if c.Pipeline == 0 {
		c.Pipeline = 1
	}
	if c.Loops == 0 {
		c.Loops = 1
	}
}

// Run sends the load and returns what was measured. When ctx ends first it returns
// the error of ctx.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	address, err := net.ResolveTCPAddr("tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("find the server: %w", err)
	}
	loops := make([]*loop, cfg.Loops)
	defer func() {
		for _, l := range loops {
			if l != nil {
				l.close()
			}
		}
	}()
	collected := newCollector(cfg)
	defer collected.close()
	for i := range loops {
		if loops[i], err = newLoop(cfg, i, address, collected); err != nil {
			return nil, err
		}
		if err := loops[i].connectAll(ctx); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	failed := make(chan error, len(loops))
	for _, l := range loops {
		go func() { failed <- l.run(ctx, start) }()
	}
	var faults []error
	for range loops {
		faults = append(faults, <-failed)
	}
	collected.close()
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return collected.result(loops), nil
}
