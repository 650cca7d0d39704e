package server

import (
	"context"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/keys"
	"companyscore/server/meter"
	"companyscore/server/sandbox"
)

// The headers of draft-ietf-httpapi-ratelimit-headers. They describe the monthly budgets of cold
// and of cached calls. All answers to a valid key of a metered plan have them.
const (
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"
)

// quotaWait bounds the first read of the counts of an account. An answer without them is
// better than a late one.
const quotaWait = 250 * time.Millisecond

// quotaMonth has the parts of the headers that are the same for a month.
type quotaMonth struct {
	start, end time.Time
	policies   map[account.Plan][]byte // RateLimit-Policy; empty for an unmetered plan
}

// quotaMonthOf returns the month of an instant.
func (s *Server) quotaMonthOf(now time.Time) *quotaMonth {
	if m := s.quotaMonth.Load(); m != nil && !now.Before(m.start) && now.Before(m.end) {
		return m
	}
	year, month, _ := now.UTC().Date()
	m := &quotaMonth{start: time.Date(year, month, 1, 0, 0, 0, 0, time.UTC), policies: make(map[account.Plan][]byte)}
	m.end = m.start.AddDate(0, 1, 0)
	window := int64(m.end.Sub(m.start) / time.Second)
	for _, plan := range account.Plans {
		m.policies[plan] = appendBudgets(nil, s.Meter.Limits(plan), meter.Quota{}, ";q=", ";w=", window)
	}
	s.quotaMonth.Store(m)
	return m
}

// appendBudgets appends an item for each monthly budget of a plan, such as "cold";r=7;t=60. number is
// the parameter of what is left, period that of the seconds.
func appendBudgets(dst []byte, limits meter.PlanLimits, used meter.Quota, number, period string, seconds int64) []byte {
	start := len(dst)
	for _, budget := range [...]struct {
		name string
		most *int64
		used int64
	}{{"cold", limits.ColdCallsIncluded, used.Cold}, {"cached", limits.CachedCallsIncluded, used.Cached}} {
		if budget.most == nil {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ", "...)
		}
		dst = append(append(append(dst, '"'), budget.name...), '"')
		dst = strconv.AppendInt(append(dst, number...), max(*budget.most-budget.used, 0), 10)
		dst = strconv.AppendInt(append(dst, period...), seconds, 10)
	}
	return dst
}

// appendRateLimit appends the value of RateLimit.
func (m *quotaMonth) appendRateLimit(dst []byte, limits meter.PlanLimits, used meter.Quota, now time.Time) []byte {
	return appendBudgets(dst, limits, used, ";r=", ";t=", int64(m.end.Sub(now)/time.Second)+1)
}

// setQuota sets the headers of an answer to a valid key.
func (s *Server) setQuota(c *fiber.Ctx, who keys.Caller) {
	now, limits := s.now(), s.Meter.Limits(who.Account.Plan)
	month := s.quotaMonthOf(now)
	policy := month.policies[who.Account.Plan]
	if len(policy) == 0 {
		return
	}
	var used meter.Quota
	known := true
	if who.Mode == account.Live {
		used, known = s.Meter.Quota(who.Account, now)
	} else {
		used.Cold, used.Cached = sandbox.Calls(limits.ColdCallsIncluded, limits.CachedCallsIncluded)
	}
	if !known {
		ctx, cancel := context.WithTimeout(c.UserContext(), s.quotaWait)
		defer cancel()
		var err error
		if used, err = s.Meter.LoadQuota(ctx, who.Account, now); err != nil {
			s.logger.Debug("answer without RateLimit", "request", requestID(c), "err", err)
			return
		}
	}
	c.Response().Header.SetBytesV(headerRateLimitPolicy, policy)
	c.Response().Header.SetBytesV(headerRateLimit, month.appendRateLimit(nil, limits, used, now))
}
