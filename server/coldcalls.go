package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/internal/account"
	"companyscore/server/cache"
	"companyscore/server/meter"
)

// Admission admits and counts the calls of [ColdCalls]. See meter.Meter.
type Admission interface {
	Limits(plan account.Plan) meter.PlanLimits
	Admit(ctx context.Context, req meter.AdmitRequest) (meter.Admission, error)
	Replay(ctx context.Context, req meter.AdmitRequest) (a meter.Admission, found bool, err error)
	CountCached(acct account.Account, now time.Time)
}

// ColdCalls answers calls for a score: with a stored one that is fresh enough, or with the admission of
// a cold call. The API and the console share it. It is safe for concurrent use.
type ColdCalls struct {
	cache    *cache.Cache
	meter    Admission
	asked    func(domain string)
	outcomes *prometheus.CounterVec
	logger   *slog.Logger
}

// NewColdCalls returns cold calls that are admitted by meter and counted in registry. asked is called
// with the domain of each admitted call and must not block. The cache reports reads through its own
// function, see cache.New.
func NewColdCalls(
	cache *cache.Cache, meter Admission, asked func(domain string), registry prometheus.Registerer, logger *slog.Logger,
) *ColdCalls {
	outcomes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "companyscore_cold_calls_total", Help: "Cold calls, by outcome: admitted, replayed, the limit that was reached, or error.",
	}, []string{"outcome"})
	registry.MustRegister(outcomes)
	return &ColdCalls{cache: cache, meter: meter, asked: asked, outcomes: outcomes, logger: logger}
}

func (c *ColdCalls) count(outcome string) { c.outcomes.WithLabelValues(outcome).Inc() }

// freshOrAdmit returns the admission of an earlier call with the same Idempotency-Key, or a stored
// score that is fresh enough for the tier of the account, and counts the call. If there is neither,
// or no such call and the caller forced a run, it admits a cold call. Found of the entry is false
// unless a stored score is returned.
func (c *ColdCalls) freshOrAdmit(ctx context.Context, admit meter.AdmitRequest, forced bool) (cache.Entry, cache.Level, meter.Admission,
	error) {
	earlier, found, err := c.meter.Replay(ctx, admit)
	switch {
	case errors.Is(err, meter.ErrIdempotencyReused):
		return cache.Entry{}, 0, earlier, &errIdempotencyReused
	case err != nil:
		return cache.Entry{}, 0, earlier, fmt.Errorf("%w: %w", engineProblem(err, admit), err)
	case found:
		c.count("replayed")
		return cache.Entry{}, 0, earlier, nil
	}
	if !forced {
		oldest := admit.Now.Add(-c.meter.Limits(admit.Account.Plan).FreshnessWindow)
		entry, from, err := c.freshScore(ctx, admit.Domain, oldest)
		if err != nil {
			return entry, from, meter.Admission{}, fmt.Errorf("%w: %w", &errEngine, err)
		}
		if entry.Found() {
			c.meter.CountCached(admit.Account, admit.Now)
			return entry, from, meter.Admission{}, nil
		}
	}
	admission, err := c.meter.Admit(ctx, admit)
	var limit *meter.Rejected
	switch {
	case errors.As(err, &limit):
		c.count(string(limit.Reason))
		return cache.Entry{}, 0, admission, rejected(limit)
	case errors.Is(err, meter.ErrIdempotencyReused):
		return cache.Entry{}, 0, admission, &errIdempotencyReused
	case err != nil:
		c.count("error")
		return cache.Entry{}, 0, admission, fmt.Errorf("%w: %w", engineProblem(err, admit), err)
	case admission.Replayed:
		c.count("replayed")
	default:
		c.count("admitted")
		c.asked(admit.Domain)
	}
	return cache.Entry{}, 0, admission, nil
}

// engineProblem returns the problem for an admission that failed with err. Its message
// contains "not charged" only if that is certain.
func engineProblem(err error, req meter.AdmitRequest) *problem {
	switch {
	case !errors.Is(err, meter.ErrOutcomeUnknown):
		return &errEngine
	case req.IdempotencyKey == "":
		return &errOutcomeUnknown
	}
	return &errOutcomeOfKey
}

// freshScore returns a score that is not older than oldest, and the tier that answered. If
// there is none, Found of the entry is false. A missing or old entry in memory or Redis may
// be stale, and a cold call is charged, so freshScore then reads the store. It first reads
// only the time of the newest record, since nearly all such companies have no fresh score.
func (c *ColdCalls) freshScore(ctx context.Context, domain string, oldest time.Time) (cache.Entry, cache.Level, error) {
	entry, from, ok := c.cache.Near(ctx, domain)
	if ok && entry.Found() && !entry.ScoredAt.Before(oldest) {
		return entry, from, nil
	}
	at, err := c.cache.NewestAt(ctx, domain)
	if err != nil || at.IsZero() || at.Before(oldest) {
		return cache.Entry{}, cache.ClickHouse, err
	}
	entry, err = c.cache.Fresh(ctx, domain)
	return entry, cache.ClickHouse, err
}
