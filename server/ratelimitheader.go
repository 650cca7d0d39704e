package server

import (
	"context"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
)

// The headers of draft-ietf-httpapi-ratelimit-headers. They describe the monthly budget
// of cold calls. Only answers to POST /v1/score have them.
const (
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"
)

// setRateLimit sets the headers with the remaining cold calls of the month. It sets none
// for an unmetered tier.
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

// setBudget reads the remaining budget and calls setRateLimit, for answers that charge
// nothing. If the read fails, the answer has no such headers.
func (s *Server) setBudget(c *fiber.Ctx, ctx context.Context, acct account.Account) {
	remaining, err := s.Meter.Remaining(ctx, acct, s.now())
	if err != nil {
		s.logger.Warn("budget not read", "request", requestID(c), "err", err)
		return
	}
	s.setRateLimit(c, acct.Tier, remaining)
}
