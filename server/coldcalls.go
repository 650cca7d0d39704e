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
	AdmitMany(ctx context.Context, req meter.BulkRequest) (meter.BulkAdmission, error)
	ReplayMany(ctx context.Context, req meter.BulkRequest) (a meter.BulkAdmission, found bool, err error)
	Room(ctx context.Context, req meter.BulkRequest) (n int, rest meter.Reason, err error)
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
		return cache.Entry{}, 0, earlier, fmt.Errorf("%w: %w", engineProblem(err, admit.IdempotencyKey), err)
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
		return cache.Entry{}, 0, admission, fmt.Errorf("%w: %w", engineProblem(err, admit.IdempotencyKey), err)
	case admission.Replayed:
		c.count("replayed")
	default:
		c.count("admitted")
		c.asked(admit.Domain)
	}
	return cache.Entry{}, 0, admission, nil
}

// bulkCall is what a call for many companies found and did.
type bulkCall struct {
	stored map[string]cache.Entry // scores that answer the call, by domain
	level  cache.Level            // the farthest that was read
	jobs   map[string]string      // ids by domain; empty ids in a dry run
	rest   meter.Reason           // the limit that refused the other domains
}

// many is freshOrAdmit for many companies: it admits a cold call for each company without a fresh score.
func (c *ColdCalls) many(ctx context.Context, req meter.BulkRequest, forced bool) (bulkCall, error) {
	earlier, found, err := c.meter.ReplayMany(ctx, req)
	if err != nil {
		return bulkCall{}, bulkProblem(err, req)
	}
	if found {
		c.outcomes.WithLabelValues("replayed").Add(float64(len(earlier.Jobs)))
		return c.replayed(ctx, req, earlier)
	}
	call, err := c.fresh(ctx, req, forced)
	if err != nil {
		return bulkCall{}, err
	}
	cold := req
	cold.Domains = call.without(req.Domains)
	if len(cold.Domains) > 0 {
		a, err := c.meter.AdmitMany(ctx, cold)
		var limit *meter.Rejected
		switch {
		case errors.As(err, &limit) && req.Partial && len(call.stored) > 0:
			a.Rest = limit.Reason
		case errors.As(err, &limit):
			c.outcomes.WithLabelValues(string(limit.Reason)).Add(float64(len(cold.Domains)))
			return bulkCall{}, rejectedMany(limit, len(cold.Domains))
		case err != nil:
			c.outcomes.WithLabelValues("error").Add(float64(len(cold.Domains)))
			return bulkCall{}, bulkProblem(err, req)
		case a.Replayed: // by a call at the same time
			c.outcomes.WithLabelValues("replayed").Add(float64(len(a.Jobs)))
			return c.replayed(ctx, req, a)
		}
		c.outcomes.WithLabelValues("admitted").Add(float64(len(a.Jobs)))
		if a.Rest != "" {
			c.outcomes.WithLabelValues(string(a.Rest)).Add(float64(len(cold.Domains) - len(a.Jobs)))
		}
		call.jobs, call.rest = a.Jobs, a.Rest
		for domain := range a.Jobs {
			c.asked(domain)
		}
	}
	for range call.stored {
		c.meter.CountCached(req.Account, req.Now)
	}
	return call, nil
}

// dry returns what many would do, and does nothing.
func (c *ColdCalls) dry(ctx context.Context, req meter.BulkRequest, forced bool) (bulkCall, error) {
	call, err := c.fresh(ctx, req, forced)
	if err != nil {
		return bulkCall{}, err
	}
	cold := req
	cold.Domains = call.without(req.Domains)
	if len(cold.Domains) == 0 {
		return call, nil
	}
	room, rest, err := c.meter.Room(ctx, cold)
	if err != nil {
		return bulkCall{}, fmt.Errorf("%w: %w", &errEngine, err)
	}
	if rest != "" && !req.Partial {
		room = 0
	}
	call.rest, call.jobs = rest, make(map[string]string, room)
	for _, domain := range cold.Domains[:room] {
		call.jobs[domain] = ""
	}
	return call, nil
}

// fresh reads the scores that are fresh enough for the account, none if forced is set.
func (c *ColdCalls) fresh(ctx context.Context, req meter.BulkRequest, forced bool) (bulkCall, error) {
	if forced {
		return bulkCall{level: cache.ClickHouse}, nil
	}
	oldest := req.Now.Add(-c.meter.Limits(req.Account.Plan).FreshnessWindow)
	stored, level, err := c.cache.ManySince(ctx, req.Domains, oldest)
	if err != nil {
		return bulkCall{}, fmt.Errorf("%w: %w", &errEngine, err)
	}
	return bulkCall{stored: stored, level: level}, nil
}

// replayed is the answer of an earlier call with the same Idempotency-Key: its jobs, and the newest scores of
// the companies for which it started none.
func (c *ColdCalls) replayed(ctx context.Context, req meter.BulkRequest, a meter.BulkAdmission) (bulkCall, error) {
	call := bulkCall{jobs: a.Jobs, rest: a.Rest}
	others := call.without(req.Domains)
	entries, level, err := c.cache.Many(ctx, others)
	if err != nil {
		return bulkCall{}, fmt.Errorf("%w: %w", &errEngine, err)
	}
	call.level, call.stored = level, make(map[string]cache.Entry, len(others))
	for domain, e := range entries {
		if e.Found() {
			call.stored[domain] = e
			c.meter.CountCached(req.Account, req.Now)
		}
	}
	return call, nil
}

// without returns the domains that have neither a score nor a job.
func (b bulkCall) without(domains []string) []string {
	var rest []string
	for _, domain := range domains {
		_, started := b.jobs[domain]
		if _, stored := b.stored[domain]; !stored && !started {
			rest = append(rest, domain)
		}
	}
	return rest
}

// bulkProblem is the error of a call for many companies that was not answered by a limit.
func bulkProblem(err error, req meter.BulkRequest) error {
	if errors.Is(err, meter.ErrIdempotencyReused) {
		return &errIdempotencyReused
	}
	return fmt.Errorf("%w: %w", engineProblem(err, req.IdempotencyKey), err)
}

// engineProblem returns the problem for an admission that failed with err. Its message
// contains "not charged" only if that is certain.
func engineProblem(err error, idempotencyKey string) *problem {
	switch {
	case !errors.Is(err, meter.ErrOutcomeUnknown):
		return &errEngine
	case idempotencyKey == "":
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
