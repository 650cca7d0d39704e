package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// interval is what one loop counted in one second.
type interval struct {
	index           int   // from 1
	end             int64 // nanoseconds since the start
	sent            int64
	answered        int64
	failed          int64
	waiting         int64
	latency, pacing *hdrhistogram.Histogram
}

func newInterval(index int) *interval {
	return &interval{index: index, end: int64(index) * int64(time.Second), latency: NewHistogram(), pacing: NewHistogram()}
}

// turnInterval passes the ended second to the collector, which sums it on its own
// goroutine.
func (l *loop) turnInterval(now int64) {
	index := l.interval.index
	l.interval.waiting = int64(l.waiting.len())
	l.collected.in <- l.interval
	select {
	case l.interval = <-l.collected.spare:
		l.interval.index, l.interval.end = index+1, int64(index+1)*int64(time.Second)
	default:
		l.interval = newInterval(index + 1)
	}
	if l.interval.end <= now { // the loop did not run for seconds
		l.turnInterval(now)
	}
}

// collector sums the measurements of the loops.
type collector struct {
	cfg     Config
	in      chan *interval
	spare   chan *interval
	done    chan struct{}
	merged  map[int]*interval
	missing map[int]int // loops that have not sent the interval
	list    []Interval
	first   *hdrhistogram.Histogram
	last    *hdrhistogram.Histogram
	soFar   *hdrhistogram.Histogram // nil without cfg.OnInterval
	closing sync.Once
}

func newCollector(cfg Config) *collector {
	c := &collector{
		cfg: cfg, in: make(chan *interval, 16), spare: make(chan *interval, 16), done: make(chan struct{}),
		merged: make(map[int]*interval), missing: make(map[int]int), first: NewHistogram(), last: NewHistogram(),
	}
	if cfg.OnInterval != nil {
		c.soFar = NewHistogram()
	}
	go c.run()
	return c
}

func (c *collector) run() {
	defer close(c.done)
	for i := range c.in {
		c.add(i)
	}
}

// add adds an interval of one loop. With the last loop's part it calls OnInterval.
func (c *collector) add(i *interval) {
	sum, ok := c.merged[i.index]
	if !ok {
		c.merged[i.index], c.missing[i.index] = i, c.cfg.Loops
		sum = i
	} else {
		sum.sent += i.sent
		sum.answered += i.answered
		sum.failed += i.failed
		sum.waiting += i.waiting
		sum.latency.Merge(i.latency)
		sum.pacing.Merge(i.pacing)
		c.giveBack(i)
	}
	if c.missing[i.index]--; c.missing[i.index] > 0 {
		return
	}
	delete(c.merged, sum.index)
	delete(c.missing, sum.index)
	at := time.Duration(sum.end)
	begin, end := c.cfg.Warmup, c.cfg.Warmup+c.cfg.Duration
	third := c.cfg.Duration / 3
	middle := at - time.Second/2
	if middle > begin && middle <= begin+third {
		c.first.Merge(sum.latency)
	}
	if middle > end-third && middle <= end {
		c.last.Merge(sum.latency)
	}
	out := Interval{
		At: at, Measured: middle > begin && middle <= end, Sent: sum.sent, Answered: sum.answered, Failed: sum.failed, Waiting: sum.waiting,
		Headline: sum.latency.TotalCount(), PacingP99: sum.pacing.ValueAtPercentile(99),
	}
	if out.Headline > 0 {
		out.P50, out.P99, out.Max = sum.latency.ValueAtPercentile(50), sum.latency.ValueAtPercentile(99), sum.latency.Max()
	}
	if c.soFar != nil && out.Measured {
		c.soFar.Merge(sum.latency)
		out.P99SoFar = c.soFar.ValueAtPercentile(99)
	}
	c.list = append(c.list, out)
	if c.cfg.OnInterval != nil {
		c.cfg.OnInterval(out)
	}
	c.giveBack(sum)
}

func (c *collector) giveBack(i *interval) {
	latency, pacing := i.latency, i.pacing
	latency.Reset()
	pacing.Reset()
	select {
	case c.spare <- &interval{latency: latency, pacing: pacing}:
	default:
	}
}

// close waits until all sent intervals are summed.
func (c *collector) close() {
	c.closing.Do(func() { close(c.in) })
	<-c.done
}

// result sums the totals of the loops. All loops must have ended.
func (c *collector) result(loops []*loop) *Result {
	r := &Result{Elapsed: c.cfg.Duration, Intervals: c.list, First: c.first, Last: c.last, Pacing: NewHistogram(), Waiting: NewHistogram(),
		Loops: len(loops)}
	index := make(map[Key]int)
	ended := int64(0)
	exhausted := true
	for i, l := range loops {
		r.Planned += l.planned
		r.Sent += l.sent
		r.Answered += l.answered
		r.Reconnects += l.reconnect
		r.CPU += l.cpu
		if i == 0 || l.priority != r.Priority {
			r.Priority = l.priority
		}
		r.Pacing.Merge(l.pacing)
		r.Waiting.Merge(l.queued)
		ended, exhausted = max(ended, l.last), exhausted && l.exhausted
		for _, class := range l.classes {
			if class.latency.TotalCount() == 0 {
				continue // of the warm-up only
			}
			key := l.key(class)
			i, ok := index[key]
			if !ok {
				i = len(r.Classes)
				index[key] = i
				r.Classes = append(r.Classes, Class{Key: key, Latency: NewHistogram(), Service: NewHistogram()})
			}
			r.Classes[i].Bytes += class.bytes
			r.Classes[i].Latency.Merge(class.latency)
			r.Classes[i].Service.Merge(class.service)
		}
	}
	if exhausted && ended < int64(c.cfg.Warmup+c.cfg.Duration) {
		r.Elapsed = max(time.Duration(ended)-c.cfg.Warmup, 1)
	}
	return r
}
