package server

import (
	"context"
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/job"
)

// retryPoll is the Retry-After of a pending job, in seconds.
const retryPoll = "5"

// getJob returns a job. It settles the job if its run has ended.
func (s *Server) getJob(c *fiber.Ctx) error {
	who := callerOf(c)
	if who.Mode == account.Test {
		return &errJobNotFound // the sandbox has no jobs
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	j, err := s.Jobs.Get(ctx, strings.Clone(c.Params("job_id")))
	switch {
	case errors.Is(err, job.ErrNotFound):
		return &errJobNotFound
	case err != nil:
		return err
	case j.AccountID != who.Account.ID:
		return &errForbidden
	}
	j, err = s.Jobs.Settle(ctx, j)
	switch {
	case errors.Is(err, job.ErrNotFound):
		return &errJobNotFound
	case err != nil:
		return err
	}
	body := api.Job{JobID: j.ID, Status: string(j.Status), Domain: j.Domain, CreatedAt: api.Time(j.CreatedAt),
		FailureReason: string(j.FailureReason)}
	c.Set(fiber.HeaderCacheControl, noStore)
	if j.Status == job.Pending {
		c.Set(fiber.HeaderRetryAfter, retryPoll)
		return c.JSON(body)
	}
	completed := api.Time(j.CompletedAt)
	body.CompletedAt = &completed
	if j.Status == job.Complete {
		s.Cache.DropOlder(j.Domain, j.ScoredAt) // the next read must return this score
		body.Result = &api.Result{Domain: j.Domain, ScoredAt: api.Time(j.ScoredAt)}
		body.ScoreURL = "/v1/score/" + j.Domain
	}
	return c.JSON(body)
}
