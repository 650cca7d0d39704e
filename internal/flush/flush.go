// Package flush writes what a process has collected in memory: at an interval, and once more at the end.
//
// A [Loop] has the time: when to write, for how long, and what to log. A [Buffer] has the rows: how many wait, which are dropped, and how
// many share a write. What is not a list of rows, such as totals in a map, needs a Loop only.
package flush

import (
	"context"
	"log/slog"
	"time"

	"companyscore/internal/retry"
)

// Config configures a Loop.
type Config struct {
	// Interval is the time from the end of a write to the start of the next one.
	Interval time.Duration
	// Longest bounds the interval while writes fail: it doubles up to about Longest. Zero means that it does not grow.
	Longest time.Duration
	// Timeout bounds each write. Zero means that the write bounds itself.
	Timeout time.Duration
	// Trouble is the message for writes that fail, such as "requests not written yet".
	Trouble string
	// Logger gets a warning when writes begin to fail, and a line when they succeed again.
	Logger *slog.Logger
}

// logPause is the minimum time between two warnings of a Loop. It bounds the lines of a store that fails now and then.
const logPause = 5 * time.Second

// Loop calls a function at an interval. The function is never called concurrently.
type Loop struct {
	cfg    Config
	write  func(context.Context) error
	cancel context.CancelFunc
	ended  chan struct{}

	// The fields below belong to the goroutine of the loop.
	failing time.Time // start of the failures that were logged; zero if the last write succeeded
	warned  time.Time
}

// Start returns a loop that calls write until Stop or Close. write must return soon after its context ends, and must keep what it could
// not write for the next call.
func Start(cfg Config, write func(ctx context.Context) error) *Loop {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Loop{cfg: cfg, write: write, cancel: cancel, ended: make(chan struct{})}
	go l.run(ctx)
	return l
}

// Stop cancels the write in flight and returns after its end. There is no further write. Stop may be called several times.
func (l *Loop) Stop() {
	l.cancel()
	<-l.ended
}

// Close stops the loop and writes a last time, until ctx ends at the latest. It returns the error of that write.
func (l *Loop) Close(ctx context.Context) error {
	l.Stop()
	return l.once(ctx)
}

func (l *Loop) run(ctx context.Context) {
	defer close(l.ended)
	wait, pauses := l.cfg.Interval, retry.Backoff(2*l.cfg.Interval, l.cfg.Longest)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := l.once(ctx)
		if ctx.Err() != nil {
			return
		}
		l.log(err)
		switch {
		case err == nil:
			wait = l.cfg.Interval
			pauses.Reset()
		case l.cfg.Longest > 0:
			wait = pauses.NextBackOff()
		}
	}
}

// once writes within the timeout.
func (l *Loop) once(ctx context.Context) error {
	if l.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.cfg.Timeout)
		defer cancel()
	}
	return l.write(ctx)
}

// log logs the first of several errors in a row, and the first success after them.
func (l *Loop) log(err error) {
	now := time.Now()
	switch {
	case err != nil && l.failing.IsZero() && (l.warned.IsZero() || now.Sub(l.warned) >= logPause):
		l.failing, l.warned = now, now
		l.cfg.Logger.Warn(l.cfg.Trouble, "err", err)
	case err == nil && !l.failing.IsZero():
		l.cfg.Logger.Info("over: "+l.cfg.Trouble, "lasted", now.Sub(l.failing).Round(time.Millisecond))
		l.failing = time.Time{}
	}
}
