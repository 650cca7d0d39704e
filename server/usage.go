package server

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/sandbox"
)

// getUsage returns the usage of the account in this month. The call itself is not counted.
func (s *Server) getUsage(c *fiber.Ctx) error {
	who := callerOf(c)
	c.Set(fiber.HeaderCacheControl, noStore)
	included := s.Meter.Limits(who.Account.Plan)
	limits := api.TierLimits{
		CachedCallsIncluded: included.CachedCallsIncluded, ColdCallsIncluded: included.ColdCallsIncluded,
		FreshnessWindowHours: included.FreshnessWindow.Hours(),
	}
	if who.Mode == account.Test {
		mark(c, originSandbox)
		return c.JSON(sandbox.Usage(who.Account.ID, string(who.Account.Plan), limits, s.now()))
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	u, err := s.Meter.Usage(ctx, who.Account, s.now())
	if err != nil {
		return err
	}
	mark(c, originRedis)
	return c.JSON(api.Usage{
		UserID: u.AccountID, Period: u.Period, Tier: string(u.Plan),
		TotalCalls: u.TotalCalls, ColdCalls: u.ColdCalls, CachedCalls: u.CachedCalls,
		LastReset: api.Time(u.LastReset), NextReset: api.Time(u.NextReset), TierLimits: limits,
	})
}
