// Package load sends HTTP requests at a fixed rate and measures the latency of each
// from the instant at which it was due (open loop). The figures therefore include the
// requests that become due while the server stalls. With rate zero, each connection
// sends its next request when the previous one is answered (closed loop), to measure
// throughput.
//
// One loop is one thread with its own connections. It sleeps in the kernel until the
// next request is due or a socket is ready. It reads and writes sockets directly,
// without the network poller of the Go runtime, and allocates nothing per request. One
// thread makes about a hundred thousand requests per second.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Arrivals is the distribution of the instants at which requests are due.
type Arrivals string

const (
	// Constant spaces requests evenly.
	Constant Arrivals = "constant"
	// Poisson draws the gaps from an exponential distribution, like calls of many
	// independent callers.
	Poisson Arrivals = "poisson"
)

// Priority is the scheduling priority of the loops' threads. All but Normal require
// privileges.
type Priority string

const (
	// Normal is the default priority.
	Normal Priority = "normal"
	// High is a nice value of -10. Where Linux groups threads by session (autogroup), it
	// has an effect only within the session.
	High Priority = "high"
	// RealTime is SCHED_RR: the threads run before all ordinary ones. Use it on machines
	// that are busy with other work. A generator that uses much of a processor then takes
	// it from the server.
	RealTime Priority = "real-time"
)

// Priorities lists all, lowest first.
var Priorities = []Priority{Normal, High, RealTime}

// Config describes one load. Address, Source and Duration are required.
type Config struct {
	// Address is host:port of the server. The protocol is plain HTTP/1.1.
	Address string
	// Source returns the requests of loop number i of n.
	Source func(i, n int) Source
	// Ops names the kinds of requests, by Request.Op.
	Ops []string
	// Rate is the number of requests per second of all loops together. Zero is a closed
	// loop.
	Rate     float64
	Arrivals Arrivals // zero: Constant
	Seed     uint64   // of the arrivals
	// Duration is the measured time. It follows Warmup, which has the same load.
	Duration, Warmup time.Duration
	// Drain bounds the wait for answers at the end; zero means Timeout.
	Drain time.Duration
	// Timeout bounds one request; zero means 10 s.
	Timeout time.Duration
	// Connections is the number of connections of all loops together; zero means 64.
	Connections int
	// Pipeline is the maximum number of requests in flight per connection; zero means 1.
	Pipeline int
	// Loops is the number of threads; zero means 1.
	Loops int
	// Processors are the processors to which loops are pinned, in turn; nil pins none.
	Processors []int
	// Priority is the requested priority; zero means Normal. Result.Priority is the
	// granted one.
	Priority Priority
	// Spin is the time before a request is due in which the loop polls the clock and
	// does not sleep.
	Spin time.Duration
	// Headline is the class whose latency is recorded per second.
	Headline Key
	// OnInterval is called once per second with its counts, from one goroutine.
	OnInterval func(Interval)
}

// Key names a class of answers: the kind of the request and the outcome. For a 200 the
// outcome is the name in the Server-Timing header, else the status as a number or one
// of the failures. An empty Outcome matches every answer to Op.
type Key struct{ Op, Outcome string }

func (k Key) String() string { return k.Op + " " + k.Outcome }

// Failures: outcomes of requests that were not answered.
const (
	TimedOut     = "timeout"
	Disconnected = "disconnected"
	Garbled      = "garbled" // the answer was not HTTP
	Unsent       = "unsent"  // no connection became free before the end
)

// Failed reports whether k is a class of requests without an answer.
func (k Key) Failed() bool {
	return k.Outcome == TimedOut || k.Outcome == Disconnected || k.Outcome == Garbled || k.Outcome == Unsent
}

// Request is one request of a Source.
type Request struct {
	Op int // index into Config.Ops
	// Watch requests a call of Source.Answered with the answer.
	Watch bool
	// Slot is for use by the source.
	Slot uint64
}

// Answer is the answer to a request. Its slices are valid during the call only.
type Answer struct {
	Status int
	Timing []byte // the first name in the Server-Timing header
	ETag   []byte
	Body   []byte // of watched requests, at most 1 MB of it
}

// Source makes the requests of one loop. Only that loop calls it.
type Source interface {
	// Next appends a request to dst. It reports false when there are no more.
	Next(dst []byte) ([]byte, Request, bool)
	// Answered receives the answer to a watched request; its status is 0 if none came.
	// If it returns again, the loop calls Resume after the pause for a follow-up request.
	Answered(r Request, a Answer) (pause time.Duration, again bool)
	// Resume appends the follow-up request of r to dst.
	Resume(dst []byte, r Request) ([]byte, Request)
}

// Class holds the measurements of one class of answers.
type Class struct {
	Key
	Bytes int64 // of heads and bodies
	// Latency counts from when the request was due, Service from when it was sent. Both
	// are in nanoseconds.
	Latency, Service *hdrhistogram.Histogram
}

// Result holds the measurements. A request counts if it was due in the measured time.
type Result struct {
	Elapsed   time.Duration // measured time
	Planned   int64         // requests that were due, follow-ups included
	Sent      int64
	Answered  int64
	Classes   []Class
	Intervals []Interval
	// First and Last hold the latency of the headline class in the first and the last
	// third of the measured time.
	First, Last *hdrhistogram.Histogram
	// Pacing is the delay of the generator: from when a request was due to when a loop
	// took it up. Waiting is the time from there until a connection was free.
	Pacing, Waiting *hdrhistogram.Histogram
	Reconnects      int64
	// CPU is the CPU time of the loops in the measured time, Loops their number.
	CPU      time.Duration
	Loops    int
	Priority Priority // granted to the loops
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
	P99SoFar      int64 // of the measured intervals until this one; zero without Config.OnInterval
}

// NewHistogram returns a histogram of nanoseconds up to two minutes, exact to three figures.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(100, int64(2*time.Minute), 3)
}

// Validate returns all faults of a Config as one error.
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
	fault(c.Loops > 0 && c.Connections > 0 && c.Loops > c.Connections, "%d loops share %d connections: each needs one", c.Loops,
		c.Connections)
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

// Run sends the load and returns the measurements. If ctx ends first, it returns the
// error of ctx.
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
