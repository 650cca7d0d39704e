package server

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/sandbox"
)

// usageGroupings are what the requests of an account can be counted by. The first is the default.
var usageGroupings = []string{"day", "key", "route", "status"}

// usageDaysMax is the maximum range of a history of requests in days. Counts are kept for 30 days.
const usageDaysMax = 31

// historiesMax is the maximum number of histories of requests that a server reads at once, and
// historiesAccountMax that of one account. They are free and not kept in memory, so calls wait for each
// other and not for scores.
const (
	historiesMax        = 2
	historiesAccountMax = 1
)

// getUsageHistory returns the requests of the account by day, key, route or status. The call
// itself is not charged.
func (s *Server) getUsageHistory(c *fiber.Ctx) error {
	who := callerOf(c)
	c.Set(fiber.HeaderCacheControl, noStore)
	from, to, by, err := usageRange(c, s.now())
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		mark(c, originSandbox)
		return c.JSON(sandbox.UsageHistory(who.Account.ID, by, from, to))
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	place, err := s.histories.reserve(ctx, who.Account.ID, 1, &errHistories, &errHistories)
	if err != nil {
		return err
	}
	defer place.Close()
	groups, err := s.RequestCounts.RequestGroups(ctx, who.Account.ID, from, to, by)
	if err != nil {
		return err
	}
	mark(c, originClickHouse)
	body := api.UsageHistory{UserID: who.Account.ID, From: api.Time(from), To: api.Time(to), By: by,
		Rows: make([]api.UsageGroup, len(groups))}
	for i, g := range groups {
		mean := math.Round(float64(g.Took.Microseconds())/float64(g.Calls)) / 1000
		body.Rows[i] = api.UsageGroup{Group: g.Group, Calls: g.Calls, ColdCalls: g.Charged, Errors: g.Errors, Bytes: g.Bytes, MeanMs: mean}
	}
	return c.JSON(body)
}

// usageRange reads from, to and by of the query. Counts are per minute, so from is rounded down
// and to is rounded up to a minute.
func usageRange(c *fiber.Ctx, now time.Time) (from, to time.Time, by string, err error) {
	if from, to, _, err = changesRange(c, now); err != nil {
		return from, to, by, err
	}
	from, to = from.Truncate(time.Minute), to.Add(time.Minute-1).Truncate(time.Minute)
	if to.Sub(from) > usageDaysMax*24*time.Hour {
		return from, to, by, &errSpan
	}
	by = usageGroupings[0]
	if args := c.Request().URI().QueryArgs(); args.Has("by") {
		by = string(args.Peek("by"))
	}
	if !slices.Contains(usageGroupings, by) {
		return from, to, by, &errBy
	}
	return from, to, by, nil
}
