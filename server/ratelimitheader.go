package server

import (
	"context"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
)

// The headers of draft-ietf-httpapi-ratelimit-headers. They speak of the monthly
// budget of cold calls and are sent with answers to POST /v1/score only: reading
// has no such limit.
const (
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"
)

// setRateLimit says what is left of the month's cold calls. Unmetered callers
// are told nothing.
func (s *Server) setRateLimit(c *fiber.Ctx, tier account.Tier, remaining *int64) {
	budget := s.Meter.Limits(tier).ColdCallsIncluded
	if budget == nil || remaining == nil {
		return
	}
	now := s.now().UTC()
	start := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	end := start.AddDate(0, 1, 0)
	c.Set(headerRateLimitPolicy, fmt.Sprintf(`"cold";q=%d;w=%d`, *budget, int(end.Sub(start).Seconds())))
	c.Set(headerRateLimit, fmt.Sprintf(`"cold";r=%d;t=%d`, *remaining, int(end.Sub(now).Seconds())+1))
}

// setBudget is setRateLimit for answers that did not touch the budget. An answer
// does not fail for want of it.
func (s *Server) setBudget(c *fiber.Ctx, ctx context.Context, acct account.Account) {
	remaining, err := s.Meter.Remaining(ctx, acct, s.now())
	if err != nil {
		s.logger.Warn("budget not read", "request", requestID(c), "err", err)
		return
	}
	s.setRateLimit(c, acct.Tier, remaining)
}
