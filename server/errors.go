package server

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/meter"
	"companyscore/server/sandbox"
)

// problem is an error as a caller gets it. Code is stable, for programs. Message is for
// people and may change. Slug is the name of the page about the code, see errorPages.
type problem struct {
	Status  int
	Code    string
	Slug    string
	Message string
	Reason  string
	Tier    account.Tier
	// RetryAfter is in seconds; 0 sends no header.
	RetryAfter int
}

// Error returns code and message.
func (p *problem) Error() string { return p.Code + ": " + p.Message }

// body returns the body of the answer. Its message ends with the address of the page about
// the code.
func (p *problem) body() api.Error {
	return api.Error{Code: p.Code, Message: p.Message + " See " + errorPagesPath + "/" + p.Slug + ".", Reason: p.Reason, Tier: string(p.Tier)}
}

// with returns a copy of the problem with another message.
func (p problem) with(format string, args ...any) *problem {
	p.Message = fmt.Sprintf(format, args...)
	return &p
}

// All error codes with status, slug and message. Each code has one slug and a page in errorPages.
var (
	errBodyInvalid     = problem{Status: 400, Code: "body invalid", Slug: "body-invalid", Message: "The body must be a JSON object such as {\"domain\": \"example.com\"}."}
	errDomainRequired  = problem{Status: 400, Code: "body.domain required", Slug: "body-domain-required", Message: "Name the company to score: {\"domain\": \"example.com\"}."}
	errBodyDomain      = problem{Status: 400, Code: "body.domain invalid", Slug: "body-domain-invalid"}
	errDomainsRequired = problem{Status: 400, Code: "body.domains required", Slug: "body-domains-required", Message: "List the companies to read: {\"domains\": [\"example.com\"]}."}
	errBodyDomains     = problem{Status: 400, Code: "body.domains invalid", Slug: "body-domains-invalid", Message: fmt.Sprintf("The domains must be a list of 1 to %d strings.", batchMax)}
	errBodyInclude     = problem{Status: 400, Code: "body.include invalid", Slug: "body-include-invalid", Message: "include must be a list of names of optional parts, such as [\"" + includeEvidence + "\"]."}
	errItemDomain      = problem{Status: 400, Code: "domain invalid", Slug: "domain-invalid"}
	errPathDomain      = problem{Status: 400, Code: "domain invalid", Slug: "domain-invalid"}
	errSandboxOnly     = problem{
		Status:  400,
		Code:    "sandbox: only ['" + strings.Join(sandbox.Domains, "', '") + "'] supported",
		Slug:    "sandbox-domains",
		Message: "A test key reads sandbox companies only. Use a live key for real domains.",
	}
	errTestDomain        = problem{Status: 400, Code: "test domains require a svc_test_ key", Slug: "test-domains-require-a-svc-test-key", Message: "Domains under .test are sandbox companies. Use a test key for them."}
	errUnauthorized      = problem{Status: 401, Code: "unauthorized", Slug: "unauthorized", Message: "Send a valid API key in the X-API-Key header."}
	errFreeTier          = problem{Status: 403, Code: "free_tier_sandbox_only", Slug: "free-tier-sandbox-only", Message: "The free tier scores sandbox domains only. Upgrade to score real companies.", Tier: account.Free}
	errForbidden         = problem{Status: 403, Code: "forbidden", Slug: "forbidden", Message: "This job belongs to another account."}
	errNoScore           = problem{Status: 404, Code: "no score available for this domain", Slug: "no-score-available-for-this-domain", Message: "This company was never scored. POST /v1/score starts a run."}
	errJobNotFound       = problem{Status: 404, Code: "job not found", Slug: "job-not-found", Message: "The job does not exist or has expired."}
	errNotFound          = problem{Status: 404, Code: "not found", Slug: "not-found", Message: "This address does not exist."}
	errMethod            = problem{Status: 405, Code: "method not allowed", Slug: "method-not-allowed", Message: "This address does not support the method."}
	errTimeout           = problem{Status: 408, Code: "request timeout", Slug: "request-timeout", Message: "The request did not arrive in time."}
	errTooLarge          = problem{Status: 413, Code: "request too large", Slug: "request-too-large", Message: "The request is larger than this service accepts."}
	errEncoding          = problem{Status: 415, Code: "content encoding not supported", Slug: "content-encoding-not-supported", Message: "Send the body uncompressed, without Content-Encoding."}
	errHeadersTooLarge   = problem{Status: 431, Code: "request too large", Slug: "request-too-large", Message: "The headers of the request are larger than this service accepts."}
	errBudgetExhausted   = problem{Status: 429, Code: "cold_budget_exhausted", Slug: "cold-budget-exhausted"}
	errRateLimited       = problem{Status: 429, Code: "rate limited", Slug: "rate-limited"}
	errNoHistory         = problem{Status: 404, Code: "no_history", Slug: "no-history", Message: "This company was never scored. POST /v1/score starts a run."}
	errNoRecord          = problem{Status: 404, Code: "no_history", Slug: "no-history", Message: "There is no score of this company at or before from. Its history has the first one."}
	errFrom              = problem{Status: 400, Code: "from invalid", Slug: "from-invalid", Message: "from is an instant such as 2026-05-01T00:00:00Z, or a date."}
	errTo                = problem{Status: 400, Code: "to invalid", Slug: "to-invalid", Message: "to is an instant such as 2026-05-31T00:00:00Z, or a date."}
	errFromAfterTo       = problem{Status: 400, Code: "from invalid", Slug: "from-invalid", Message: "from must not be after to."}
	errSpan              = problem{Status: 400, Code: "from invalid", Slug: "from-invalid", Message: fmt.Sprintf("from must be at most %d days before to.", usageDaysMax)}
	errBy                = problem{Status: 400, Code: "by must be one of ['" + strings.Join(usageGroupings, "','") + "']", Slug: "by", Message: "by names what requests are counted by, such as ?by=day."}
	errInvalidCursor     = problem{Status: 400, Code: "invalid_cursor", Slug: "invalid-cursor", Message: "Send next_cursor of the previous page unchanged, for the same company."}
	errLimit             = problem{Status: 400, Code: fmt.Sprintf("limit must be between 1 and %d", api.HistoryMax), Slug: "limit", Message: "limit is the number of records per page, a whole number."}
	errWindow            = problem{Status: 400, Code: "window must be one of ['" + strings.Join(windows, "','") + "']", Slug: "window", Message: "Set the window over which the delta is measured, such as ?window=30d."}
	errInclude           = problem{Status: 400, Code: "include must be one of ['" + includeEvidence + "']", Slug: "include", Message: "include names an optional part of the body, such as ?include=" + includeEvidence + "."}
	errIdempotencyKey    = problem{Status: 400, Code: "idempotency_key invalid", Slug: "idempotency-key-invalid", Message: fmt.Sprintf("An Idempotency-Key has at most %d printable ASCII characters.", idempotencyKeyMax)}
	errIdempotencyReused = problem{Status: 422, Code: "idempotency_key_reused", Slug: "idempotency-key-reused", Message: "This Idempotency-Key was used with another request within the last 24 hours. Use a new key for a new request."}
	errNotCounted        = problem{Status: 503, Code: "universe not counted yet", Slug: "universe-not-counted-yet", Message: "The first count of all companies has not ended. Try again in a few seconds.", RetryAfter: 5}
	errSandboxInvariant  = problem{Status: 500, Code: "sandbox_invariant_violated", Slug: "sandbox-invariant-violated", Message: "A request with a test key reached live data. Nothing was returned or charged. Please report it."}
	errInternal          = problem{Status: 500, Code: "internal error", Slug: "internal-error"}
	errEngine            = problem{Status: 500, Code: "scoring engine unavailable", Slug: "scoring-engine-unavailable", Message: "This request started no scoring run and was not charged. Try again in a moment."}
	errOutcomeUnknown    = errEngine.with("It is not known whether the scoring run was started and charged. If it was, the service tries to refund it. With an Idempotency-Key a repeated request is charged at most once.")
	errOutcomeOfKey      = errEngine.with("It is not known whether the scoring run was started and charged. Repeat the request with the same Idempotency-Key: it is charged at most once.")
	errRequestMalformed  = problem{Status: 400, Code: "request invalid", Slug: "request-invalid", Message: "The request is not valid HTTP."}
	errCoding            = problem{Status: 501, Code: "transfer coding not supported", Slug: "transfer-coding-not-supported", Message: "The only supported Transfer-Encoding is chunked."}

	errConnections        = problem{Status: 503, Code: "too many connections", Slug: "too-many-connections", Message: "The server has reached its limit of connections. Try again in a moment.", RetryAfter: 1}
	errAddressConnections = problem{Status: 429, Code: "too many connections", Slug: "too-many-connections", Message: "This address has reached its limit of connections. Reuse connections for several requests.", RetryAfter: 1}
	errKeyAnswers         = problem{Status: 429, Code: "rate limited", Slug: "rate-limited", Message: "Unread answers to this key have reached its limit of bytes. Read them, or send fewer requests at once.", Reason: "answer_bytes", RetryAfter: 1}
	errAllAnswers         = problem{Status: 503, Code: "overloaded", Slug: "overloaded", Message: "The answers in flight have reached the server's limit of bytes. Try again in a moment.", RetryAfter: 1}
	errAllBodies          = problem{Status: 503, Code: "overloaded", Slug: "overloaded", Message: "The requests in flight have reached the server's limit of bytes. Try again in a moment.", RetryAfter: 1}
	errHistories          = problem{Status: 503, Code: "overloaded", Slug: "overloaded", Message: "Other histories of requests are read. Try again in a moment.", RetryAfter: 1}

	// Answers of deploy/nginx.conf, which have pages too: a key's limit of requests per second, and no server.
	errKeyRequests = problem{Status: 429, Code: "rate limited", Slug: "rate-limited", Message: "This key sends more requests than it may. Try again in a moment.", RetryAfter: 1}
	errUnavailable = problem{Status: 503, Code: "unavailable", Slug: "unavailable", Message: "No server answered. It is not known whether the request was executed.", RetryAfter: 1}
)

// rejected returns the problem of a rejected cold call.
func rejected(r *meter.Rejected) *problem {
	p := errRateLimited
	switch r.Reason {
	case meter.MonthlyCap:
		p = errBudgetExhausted
		p.Message = "The cold calls of this month are used up."
	case meter.PerKeyCold1h:
		p.Message = "This key has reached its limit of cold calls per hour."
	case meter.AccountCold24h:
		p.Message = "This account has reached its limit of cold calls per 24 hours."
	}
	p.Reason = string(r.Reason)
	p.RetryAfter = int(math.Ceil(r.RetryAfter.Seconds()))
	return &p
}

// fail answers with the problem of an error from a handler, a middleware or Fiber. Unknown
// errors, problems with a status of 500 or more that wrap a cause, and errSandboxInvariant are
// logged once.
func (s *Server) fail(c *fiber.Ctx, err error) error {
	p := s.problemOf(c, err)
	c.Locals(problemLocal, p)
	if p.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(p.RetryAfter))
	}
	c.Set(fiber.HeaderCacheControl, noStore)
	if requestID(c) == "" { // refused before any handler saw it
		s.setRequestID(c)
	}
	return c.Status(p.Status).JSON(p.body())
}

func (s *Server) problemOf(c *fiber.Ctx, err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		if p.Status >= 500 && err != error(p) || p.Code == errSandboxInvariant.Code { // it has a cause, or is a defect
			s.logger.Error("request failed", "request", requestID(c), "method", c.Method(), "path", c.Path(), "err", err)
		}
		return p
	}
	var fe *fiber.Error
	if errors.As(err, &fe) {
		switch fe.Code {
		case fiber.StatusNotFound:
			return &errNotFound
		case fiber.StatusMethodNotAllowed:
			return &errMethod
		case fiber.StatusRequestTimeout:
			return &errTimeout
		case fiber.StatusRequestEntityTooLarge:
			return &errTooLarge
		case fiber.StatusRequestHeaderFieldsTooLarge:
			return &errHeadersTooLarge
		}
		if fe.Code < 500 {
			return &errRequestMalformed
		}
	}
	s.logger.Error("request failed", "request", requestID(c), "method", c.Method(), "path", c.Path(), "err", err)
	return internalProblem(requestID(c))
}

// internalProblem returns the problem of a request that failed for a reason that callers do
// not see.
func internalProblem(request string) *problem {
	return errInternal.with("The server failed at request %s. Give support this id.", request)
}
