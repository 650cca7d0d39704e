package ops

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// skewMax is the largest difference of clocks that is not reported.
	skewMax = 2 * time.Second
	// clockInterval is the time between two comparisons, and clockRetry the time after a
	// failed one. A difference is logged at most once per clockInterval.
	clockInterval = time.Minute
	clockRetry    = 5 * time.Second
	// clockTimeout bounds one comparison.
	clockTimeout = 5 * time.Second
)

// Clock compares the clock of this process with that of Redis and with the newest stored
// record. Leases and expiries use the clock of Redis. Records use clocks of processes: after
// such a clock was set back, new records seem older than stored ones and stay hidden. Check
// and the metrics are safe for concurrent use with Watch.
type Clock struct {
	redis, record func(context.Context) (time.Time, error)
	now           func() time.Time
	logger        *slog.Logger
	logged        time.Time
	last          atomic.Pointer[comparison]
}

// comparison is the outcome of comparing clocks.
type comparison struct {
	redis     time.Duration // how far the clock of Redis is ahead; negative if it is behind
	record    time.Duration // how far the newest record is ahead of now, else 0
	redisErr  error         // set if redis is not known
	recordErr error         // set if record is not known
}

// NewClock returns a clock. Call Watch to start comparisons. redis returns the time of Redis,
// record the scored_at of the newest record. NewClock registers the differences as metrics in
// seconds, NaN while they are not known.
func NewClock(redis, record func(context.Context) (time.Time, error), metrics prometheus.Registerer, logger *slog.Logger) *Clock {
	c := &Clock{redis: redis, record: record, now: time.Now, logger: logger}
	for of, value := range map[string]func(*comparison) (time.Duration, error){
		"redis":         func(d *comparison) (time.Duration, error) { return d.redis, d.redisErr },
		"newest_record": func(d *comparison) (time.Duration, error) { return d.record, d.recordErr },
	} {
		metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "companyscore_clock_ahead_seconds",
			Help: "Seconds by which the clock of Redis, or the scored_at of the newest record, is ahead of the clock of this " +
				"process. More than 2 either way is wrong. NaN when unknown.",
			ConstLabels: prometheus.Labels{"of": of},
		}, func() float64 {
			d := c.last.Load()
			if d == nil {
				return math.NaN()
			}
			ahead, err := value(d)
			if err != nil {
				return math.NaN()
			}
			return ahead.Seconds()
		}))
	}
	return c
}

// Watch compares clocks at once and then every minute, or five seconds after a failure, until
// ctx ends.
func (c *Clock) Watch(ctx context.Context) {
	for {
		wait := clockInterval
		if d := c.compare(ctx); d.redisErr != nil || d.recordErr != nil {
			wait = clockRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// compare compares the clocks, stores the result for Check and the metrics, and logs large
// differences.
func (c *Clock) compare(ctx context.Context) *comparison {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	d := &comparison{}
	// Redis reads its clock at an unknown instant between before and after.
	before := c.now()
	at, err := c.redis(ctx)
	after := c.now()
	switch d.redisErr = err; {
	case err != nil:
	case at.Before(before):
		d.redis = at.Sub(before)
	case at.After(after):
		d.redis = at.Sub(after)
	}
	if at, d.recordErr = c.record(ctx); d.recordErr == nil {
		d.record = max(0, at.Sub(c.now()))
	}
	c.last.Store(d)
	if wrong := d.wrong(); len(wrong) > 0 && time.Since(c.logged) >= clockInterval {
		c.logged = time.Now()
		c.logger.Warn("clocks differ", "differences", strings.Join(wrong, "; "))
	}
	return d
}

// wrong returns a description of each difference above skewMax.
func (d *comparison) wrong() []string {
	var wrong []string
	if d.redis.Abs() > skewMax {
		word := "ahead of"
		if d.redis < 0 {
			word = "behind"
		}
		wrong = append(wrong, fmt.Sprintf("the clock of Redis is %s %s that of this process", d.redis.Abs().Round(time.Millisecond), word))
	}
	if d.record > skewMax {
		wrong = append(wrong, fmt.Sprintf("the newest scored_at lies %s ahead of the clock of this process",
			d.record.Round(time.Millisecond)))
	}
	return wrong
}

// Check is a [Check] of the last comparison. Its errors are always [Degraded], since
// differences of clocks do not stop answers.
func (c *Clock) Check(context.Context) error {
	d := c.last.Load()
	if d == nil {
		return nil
	}
	ill := d.wrong()
	if d.redisErr != nil {
		ill = append(ill, fmt.Sprintf("not compared with Redis: %v", d.redisErr))
	}
	if d.recordErr != nil {
		ill = append(ill, fmt.Sprintf("not compared with the newest record: %v", d.recordErr))
	}
	if len(ill) > 0 {
		return &Degraded{Reason: strings.Join(ill, "; ")}
	}
	return nil
}
