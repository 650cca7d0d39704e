package fetch

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"companyscore/internal/redis"
)

var (
	//go:embed quota.lua
	quotaLua string
	//go:embed reserve.lua
	reserveLua string
	//go:embed pause.lua
	pauseLua string

	reserveScript = goredis.NewScript(quotaLua + reserveLua)
	pauseScript   = goredis.NewScript(quotaLua + pauseLua)
)

const (
	// connectionsMax bounds the concurrent requests of the process.
	connectionsMax = 64
	// hostsMax bounds the hosts whose own quota, breaker and certificate are in memory.
	hostsMax = 10_000
	// pauseMax bounds a pause that a provider asks for.
	pauseMax = 24 * time.Hour
	// sharedTimeout bounds one call of Redis.
	sharedTimeout = time.Second
)

// limits hands out turns at providers in the order of the calls. It is safe for concurrent use.
type limits struct {
	redis  goredis.UniversalClient // nil: no quota is shared
	scale  float64                 // multiplies every limit; 1 without overrides
	logger *slog.Logger
	slots  *semaphore.Weighted
	queues *lru[queueKey, *queue]

	mu       sync.Mutex
	warnedAt time.Time // of the last warning about Redis
}

type queueKey struct{ quota, host string }

// queue hands out the turns of one quota, or of one host of it.
type queue struct {
	quota Quota
	turns *rate.Limiter
	slots *semaphore.Weighted

	mu     sync.Mutex
	paused time.Time // no turn before
	pace   time.Duration
	next   time.Time // earliest next turn, when the host asked for a pace
}

func newLimits(redis goredis.UniversalClient, scale float64, logger *slog.Logger) *limits {
	if scale <= 0 {
		scale = 1
	}
	return &limits{
		redis: redis, scale: scale, logger: logger,
		slots:  semaphore.NewWeighted(int64(math.Ceil(connectionsMax * max(scale, 1)))),
		queues: newLRU[queueKey, *queue](hostsMax),
	}
}

// quotaOf returns a quota by name. It panics if there is none.
func quotaOf(name string) Quota {
	for _, q := range Quotas {
		if q.Name == name {
			return q
		}
	}
	panic("fetch: no quota " + name)
}

func (l *limits) queue(quota, host string) *queue {
	q := quotaOf(quota)
	if !q.PerHost {
		host = ""
	}
	return l.queues.getOr(queueKey{quota, host}, func() *queue {
		perSecond := float64(q.Requests) / q.Per.Seconds() * l.scale
		burst := int(math.Ceil(float64(q.Burst) * max(l.scale, 1)))
		slots := int64(math.Ceil(float64(q.InFlight) * max(l.scale, 1)))
		return &queue{quota: q, turns: rate.NewLimiter(rate.Limit(perSecond), burst), slots: semaphore.NewWeighted(slots)}
	})
}

// acquire waits for a turn in a quota and for a slot among the requests in flight. If the wait for
// the turn would leave less than need until the deadline of ctx, it fails at once with
// CodeRateLimited, and if the wait for the slot would, at that time. Without a wait it never fails
// for that reason. The returned function releases the slot.
func (l *limits) acquire(ctx context.Context, quota, host string, need time.Duration) (release func(), err error) {
	q := l.queue(quota, host)
	if err := l.waitTurn(ctx, q, need); err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-need))
		defer cancel()
	}
	if err := acquireSlot(ctx, q.slots); err != nil {
		return nil, &Error{Code: CodeRateLimited, Err: fmt.Errorf("%s: too many requests in flight: %w", quota, context.Cause(ctx))}
	}
	if err := acquireSlot(ctx, l.slots); err != nil {
		q.slots.Release(1)
		return nil, &Error{Code: CodeRateLimited, Err: fmt.Errorf("%s: too many requests of the process in flight: %w", quota,
			context.Cause(ctx))}
	}
	return func() { l.slots.Release(1); q.slots.Release(1) }, nil
}

// acquireSlot waits for a slot until ctx ends. A free slot can be had even after that.
func acquireSlot(ctx context.Context, slots *semaphore.Weighted) error {
	if slots.TryAcquire(1) {
		return nil
	}
	return slots.Acquire(ctx, 1)
}

// waitTurn waits for a turn.
func (l *limits) waitTurn(ctx context.Context, q *queue, need time.Duration) error {
	now := time.Now()
	waitMax := pauseMax
	if deadline, ok := ctx.Deadline(); ok {
		waitMax = max(0, deadline.Sub(now)-need)
	}
	tooLong := func(wait time.Duration) error {
		return &Error{Code: CodeRateLimited, RetryAfter: wait, Err: fmt.Errorf("%s: the wait of %s would outlast the deadline",
			q.quota.Name, wait.Round(time.Millisecond))}
	}
	wait, taken, err := l.reserveShared(ctx, q, waitMax)
	if !taken && err == nil && wait > 0 {
		return tooLong(wait)
	}
	if !taken {
		if wait = q.pauseLeft(now); wait > waitMax {
			return tooLong(wait)
		}
		reserved := q.turns.ReserveN(now, 1)
		if wait = max(wait, reserved.DelayFrom(now)); wait > waitMax {
			reserved.CancelAt(now)
			return tooLong(wait)
		}
	}
	pace, booked := q.reservePace(now.Add(wait), waitMax-wait)
	if wait += pace; !booked {
		return tooLong(wait)
	}
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &Error{Code: CodeRateLimited, Err: fmt.Errorf("%s: wait for a turn: %w", q.quota.Name, context.Cause(ctx))}
	}
}

// reserveShared reserves a turn in Redis. taken is true if there is one after wait. It is false
// without an error if wait is longer than waitMax, or if the quota is not shared. After an error
// the process limits itself.
func (l *limits) reserveShared(ctx context.Context, q *queue, waitMax time.Duration) (wait time.Duration, taken bool, err error) {
	if l.redis == nil || !q.quota.Shared {
		return 0, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
	defer cancel()
	interval := l.interval(q.quota)
	us, err := reserveScript.Run(ctx, l.redis, []string{redis.SourceQuota(q.quota.Name)},
		interval.Microseconds(), q.turns.Burst(), waitMax.Microseconds()).Int64()
	if err != nil {
		l.warnThrottled(err)
		return 0, false, err
	}
	if us < 0 {
		return max(time.Duration(-1-us)*time.Microsecond, time.Microsecond), false, nil
	}
	return time.Duration(us) * time.Microsecond, true, nil
}

// interval returns the time between two turns of a quota.
func (l *limits) interval(q Quota) time.Duration {
	return time.Duration(float64(q.Per) / float64(q.Requests) / l.scale)
}

// pauseQuota blocks all turns of a quota for a while.
func (l *limits) pauseQuota(ctx context.Context, quota, host string, pause time.Duration) {
	pause = min(pause, pauseMax)
	q := l.queue(quota, host)
	q.mu.Lock()
	if until := time.Now().Add(pause); until.After(q.paused) {
		q.paused = until
	}
	q.mu.Unlock()
	if l.redis == nil || !q.quota.Shared {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
	defer cancel()
	err := pauseScript.Run(ctx, l.redis, []string{redis.SourceQuota(quota)},
		l.interval(q.quota).Microseconds(), q.turns.Burst(), pause.Microseconds()).Err()
	if err != nil {
		l.warnThrottled(err)
	}
}

// setPace sets the least time between two requests to a host.
func (l *limits) setPace(quota, host string, interval time.Duration) {
	q := l.queue(quota, host)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pace = interval
}

// pauseLeft returns how long the pause lasts.
func (q *queue) pauseLeft(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(0, q.paused.Sub(now))
}

// reservePace returns how long a turn at an instant must wait for the pace of the host. It
// reserves the turn unless that is longer than waitMax.
func (q *queue) reservePace(at time.Time, waitMax time.Duration) (wait time.Duration, booked bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pace <= 0 {
		return 0, true
	}
	if wait = max(0, q.next.Sub(at)); wait > waitMax {
		return wait, false
	}
	q.next = at.Add(wait + q.pace)
	return wait, true
}

// warnThrottled logs a failure of Redis, at most once a minute.
func (l *limits) warnThrottled(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.warnedAt) > time.Minute {
		l.warnedAt = now
		l.logger.Warn("Redis is unavailable, each worker limits sources by itself", "err", err)
	}
}
