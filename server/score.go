package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/domainname"
	"companyscore/scoring"
	"companyscore/server/account"
	"companyscore/server/job"
	"companyscore/server/meter"
	"companyscore/server/sandbox"
)

// scoreBody is a score as callers see it.
type scoreBody struct {
	Mode         string               `json:"mode,omitempty"`
	Domain       string               `json:"domain"`
	ScoredAt     timestamp            `json:"scored_at"`
	Rating       scoring.Rating       `json:"svc_rating"`
	Composite    float64              `json:"composite_score"`
	ScalePremium float64              `json:"scale_premium"`
	Buckets      scoring.BucketScores `json:"buckets"`
	Caller       callerBody           `json:"x_svc"`
}

type callerBody struct {
	Tier                 account.Tier `json:"tier"`
	CacheStatus          string       `json:"cache_status"`
	FreshnessWindowHours float64      `json:"freshness_window_hours"`
}

const sandboxMode = "sandbox"

func (s *Server) scoreBody(rec scoring.Record, who account.Caller) scoreBody {
	body := scoreBody{
		Domain: rec.Domain, ScoredAt: timestamp(rec.ScoredAt), Rating: rec.Rating,
		Composite: rec.Composite, ScalePremium: rec.ScalePremium, Buckets: rec.Buckets,
		Caller: callerBody{
			Tier: who.Account.Tier, CacheStatus: "cached",
			FreshnessWindowHours: s.Meter.Limits(who.Account.Tier).FreshnessWindow.Hours(),
		},
	}
	if who.Mode == account.Test {
		body.Mode = sandboxMode
	}
	return body
}

// acceptedBody is the answer to a call that started a run.
type acceptedBody struct {
	JobID   string     `json:"job_id"`
	Status  job.Status `json:"status"`
	Domain  string     `json:"domain"`
	PollURL string     `json:"poll_url"`
}

// postScore returns a stored score that is fresh enough for the caller, or
// starts a run and returns the job to poll.
func (s *Server) postScore(c *fiber.Ctx) error {
	who := callerOf(c)
	req, err := parseScoreRequest(c.Body())
	if err != nil {
		return err
	}
	domain, err := canonical(who.Mode, req.domain, errBodyDomain)
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		return s.sandboxScore(c, domain)
	}
	tier := who.Account.Tier
	if tier == account.Free {
		return &errFreeTier
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	if !req.forceFresh || tier != account.Enterprise {
		rec, err := s.Scores.LatestHead(ctx, domain)
		switch {
		case errors.Is(err, scoring.ErrNotFound):
		case err != nil:
			return fmt.Errorf("%w: %w", &errEngine, err)
		case s.now().Sub(rec.ScoredAt) <= s.Meter.Limits(tier).FreshnessWindow:
			s.Meter.CountCached(who.Account)
			return c.JSON(s.scoreBody(rec, who))
		}
	}
	admission, err := s.Meter.Admit(ctx, meter.AdmitRequest{Account: who.Account, KeyID: who.KeyID, Domain: domain, Now: s.now()})
	var limit *meter.Rejected
	switch {
	case errors.As(err, &limit):
		return rejected(limit)
	case err != nil:
		return fmt.Errorf("%w: %w", &errEngine, err)
	}
	// The run exists from here on. If no worker can be woken now, the workers'
	// own sweep finds the run within seconds, so this is no failure of the call.
	if admission.NewRun {
		if err := s.Queue.Enqueue(ctx, admission.RunID); err != nil {
			s.logger.Warn("run left to the sweep", "request", requestID(c), "run", admission.RunID, "err", err)
		}
	}
	c.Set(fiber.HeaderRetryAfter, retryPoll)
	return c.Status(fiber.StatusAccepted).JSON(acceptedBody{
		JobID: admission.JobID, Status: job.Pending, Domain: domain, PollURL: "/v1/jobs/" + admission.JobID,
	})
}

// getScore returns the newest stored score of a company, however old.
func (s *Server) getScore(c *fiber.Ctx) error {
	who := callerOf(c)
	raw, err := pathDomain(c.Params("*"))
	if err != nil {
		return err
	}
	domain, err := canonical(who.Mode, raw, errPathDomain)
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		return s.sandboxScore(c, domain)
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	rec, err := s.Scores.LatestHead(ctx, domain)
	if errors.Is(err, scoring.ErrNotFound) {
		return &errNoScore
	}
	if err != nil {
		return err
	}
	s.Meter.CountCached(who.Account)
	return c.JSON(s.scoreBody(rec, who))
}

func (s *Server) sandboxScore(c *fiber.Ctx, domain string) error {
	rec, ok := sandbox.Score(domain, s.now())
	if !ok {
		return &errSandboxOnly
	}
	return c.JSON(s.scoreBody(rec, callerOf(c)))
}

type scoreRequest struct {
	domain     string
	forceFresh bool
}

// parseScoreRequest reads the body of POST /v1/score. Fields it does not know
// are passed over, so that newer clients can talk to it.
func parseScoreRequest(body []byte) (scoreRequest, error) {
	var fields struct {
		Domain     json.RawMessage `json:"domain"`
		ForceFresh *bool           `json:"force_fresh"`
		Wait       *bool           `json:"wait"` // accepted and without effect
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		return scoreRequest{}, errBodyInvalid.with("The body must be a JSON object such as {\"domain\": \"example.com\"}: %v.", err)
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return scoreRequest{}, &errBodyInvalid
	}
	if len(fields.Domain) == 0 || string(fields.Domain) == "null" {
		return scoreRequest{}, &errDomainRequired
	}
	var domain string
	if err := json.Unmarshal(fields.Domain, &domain); err != nil {
		return scoreRequest{}, errBodyDomain.with("The domain must be a string such as \"example.com\".")
	}
	if strings.TrimSpace(domain) == "" {
		return scoreRequest{}, &errDomainRequired
	}
	return scoreRequest{domain: domain, forceFresh: fields.ForceFresh != nil && *fields.ForceFresh}, nil
}

// pathDomain reads the domain out of a path: what a scheme is followed by, or
// the one segment there is. The result is a copy.
func pathDomain(rest string) (string, error) {
	raw, err := url.PathUnescape(rest)
	if err != nil {
		return "", errPathDomain.with("The domain in the path is not well escaped.")
	}
	raw = strings.Clone(raw)
	if !strings.Contains(raw, "://") && strings.Contains(strings.TrimSuffix(raw, "/"), "/") {
		return "", &errNotFound
	}
	return raw, nil
}

// canonical returns the spelling of a domain under which it is stored, if a key
// of that mode may ask for it. invalid is what to answer for a text that is no domain.
func canonical(mode account.Mode, raw string, invalid problem) (string, error) {
	domain, err := domainname.Clean(raw)
	if err != nil {
		return "", invalid.with("%s", explain(err))
	}
	if mode == account.Test {
		return domain, nil
	}
	if domainname.IsTest(domain) {
		return "", &errTestDomain
	}
	if err := domainname.CheckPublic(domain); err != nil {
		return "", invalid.with("%s", explain(err))
	}
	return domain, nil
}

// explain makes a sentence of what is wrong with a domain.
func explain(err error) string {
	return "The domain cannot be scored: " + strings.TrimPrefix(err.Error(), domainname.ErrInvalid.Error()+": ") + "."
}

// jobBody is a job as callers see it.
type jobBody struct {
	JobID         string            `json:"job_id"`
	Status        job.Status        `json:"status"`
	Domain        string            `json:"domain"`
	CreatedAt     timestamp         `json:"created_at"`
	CompletedAt   *timestamp        `json:"completed_at,omitempty"`
	Result        *resultBody       `json:"result_ref,omitempty"`
	ScoreURL      string            `json:"score_url,omitempty"`
	FailureReason job.FailureReason `json:"failure_reason,omitempty"`
}

type resultBody struct {
	Domain   string    `json:"domain"`
	ScoredAt timestamp `json:"scored_at"`
}

// retryPoll is how many seconds to wait between two polls.
const retryPoll = "5"

// getJob returns a job, settling it if its run is over.
func (s *Server) getJob(c *fiber.Ctx) error {
	who := callerOf(c)
	if who.Mode == account.Test {
		return &errJobNotFound // the sandbox makes no jobs
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
	body := jobBody{JobID: j.ID, Status: j.Status, Domain: j.Domain, CreatedAt: timestamp(j.CreatedAt), FailureReason: j.FailureReason}
	if j.Status == job.Pending {
		c.Set(fiber.HeaderRetryAfter, retryPoll)
		return c.JSON(body)
	}
	completed := timestamp(j.CompletedAt)
	body.CompletedAt = &completed
	if j.Status == job.Complete {
		body.Result = &resultBody{Domain: j.Domain, ScoredAt: timestamp(j.ScoredAt)}
		body.ScoreURL = "/v1/score/" + j.Domain
	}
	return c.JSON(body)
}
