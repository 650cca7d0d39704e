package server

import (
	"cmp"
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

// problem is an error as a caller gets it, with the page about its code. Message is for people and
// may change.
type problem struct {
	*errorPage
	Status  int
	Message string
	Reason  string
	Tier    account.Plan
	// RetryAfter is in seconds; 0 sends no header.
	RetryAfter int
}

// newError adds the page about a new code, and returns the first answer with the code.
func newError(page errorPage, first problem) problem {
	page.Slug = cmp.Or(page.Slug, strings.Join(strings.FieldsFunc(page.Code, notInSlug), "-"))
	page.Charged = cmp.Or(page.Charged, "No.")
	page.Retry = cmp.Or(page.Retry, "No. The same request gets the same answer.")
	errorPages = append(errorPages, &page)
	return problem{errorPage: &page}.also(first)
}

func notInSlug(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// also adds another answer to the page of a problem, and returns it.
func (p problem) also(other problem) problem {
	other.errorPage = p.errorPage
	p.Answers = append(p.Answers, other)
	return other
}

// Error returns code and message.
func (p *problem) Error() string { return p.Code + ": " + p.Message }

// body returns the body of the answer. Its message ends with the address of the page about
// the code.
func (p *problem) body() api.Error {
	return api.Error{Code: p.Code, Message: p.Message + " See " + p.Path() + ".", Reason: p.Reason, Tier: string(p.Tier)}
}

// with returns a copy of the problem with another message.
func (p problem) with(format string, args ...any) *problem {
	p.Message = fmt.Sprintf(format, args...)
	return &p
}

// The messages of the pages about codes whose answers fill in a part.
const (
	exampleOfDomain = "The domain cannot be scored: IP addresses are not domains."
	internalMessage = "The server failed at request %s. Give support this id."
)

const retryAfter = "Yes, after the seconds in the Retry-After header. Double the pause after each further failure."

// All errors: each code with its page, and its answers with their statuses and messages. Two
// without a name are answers of deploy/nginx.conf: one for a key's limit of requests per second, and
// one for no server.
var (
	errRequestMalformed = newError(errorPage{
		Code:    "request invalid",
		Meaning: "The request is not valid HTTP. The message names the part that is wrong. The server closes the connection.",
		Do: "Use an HTTP client library instead of writing requests yourself. If a proxy stands between you and the server, check " +
			"what it sends.",
	}, problem{Status: 400, Message: "The request is not valid HTTP."})
	errBodyInvalid = newError(errorPage{
		Code:    "body invalid",
		Meaning: "The body is missing, is not valid JSON, is not a JSON object, or has a field of the wrong type.",
		Do:      "Send a JSON object with the fields of the description. The message names the fault.",
	}, problem{Status: 400, Message: "The body must be a JSON object such as {\"domain\": \"example.com\"}."})
	errDomainRequired = newError(errorPage{
		Code:    "body.domain required",
		Meaning: "The body of POST /v1/score has no domain, or an empty one.",
		Do:      "Send the domain of the company in the field domain.",
	}, problem{Status: 400, Message: "Name the company to score: {\"domain\": \"example.com\"}."})
	errBodyDomain = newError(errorPage{
		Code: "body.domain invalid",
		Meaning: "The domain in the body cannot be scored. The message says why. A domain is a name below a public suffix, such as " +
			"example.com.",
		Do: "Correct the domain. A scheme, a leading www., a port and a path are removed for you. IP addresses, local names and " +
			"bare suffixes are not domains.",
	}, problem{Status: 400, Message: exampleOfDomain})
	errDomainsRequired = newError(errorPage{
		Code:    "body.domains required",
		Meaning: "The body of POST /v1/scores or POST /v1/scores/batch has no list of domains.",
		Do:      "Send the list in the field domains.",
	}, problem{Status: 400, Message: "List the companies to read: {\"domains\": [\"example.com\"]}."})
	errBodyDomains = newError(errorPage{
		Code: "body.domains invalid",
		Meaning: "The field domains is not a list of strings, is empty, or has too many entries. For POST /v1/scores it may also have a " +
			"company twice, or a domain that cannot be scored. The message says which.",
		Do: "Split a long list into several requests, and correct the domain that the message names. Nothing was started.",
	}, problem{Status: 400, Message: fmt.Sprintf("The domains must be a list of 1 to %d strings.", batchMax)})
	errBodyInclude = newError(errorPage{
		Code:    "body.include invalid",
		Meaning: "The field include of the body has a value that is not the name of an optional part.",
		Do:      "Send a list of the names that the message gives, or leave the field out.",
	}, problem{Status: 400, Message: "include must be a list of names of optional parts, such as [\"" + includeEvidence + "\"]."})
	errDomain = newError(errorPage{
		Code: "domain invalid",
		Meaning: "The domain in the path, or in an entry of a batch, cannot be scored. The message says why. The other entries of a " +
			"batch are answered.",
		Do: "Correct the domain, and escape it if it has characters that a path cannot have. IP addresses, local names and bare " +
			"suffixes are not domains.",
	}, problem{Status: 400, Message: exampleOfDomain})
	errSandboxOnly = newError(errorPage{
		Code: "sandbox: only ['" + strings.Join(sandbox.Domains, "', '") + "'] supported", Slug: "sandbox-domains",
		Meaning: "A test key asked for a real company. Test keys read the sandbox, which has these four companies only.",
		Do:      "Use one of the four domains, or a live key.",
	}, problem{Status: 400, Message: "A test key reads sandbox companies only. Use a live key for real domains."})
	errTestDomain = newError(errorPage{
		Code:    "test domains require a svc_test_ key",
		Meaning: "A live key asked for a company of the sandbox. Domains under .test are not real.",
		Do:      "Use a test key for the sandbox.",
	}, problem{Status: 400, Message: "Domains under .test are sandbox companies. Use a test key for them."})
	errInclude = newError(errorPage{
		Code: "include must be one of ['" + includeEvidence + "']", Slug: "include",
		Meaning: "The query parameter include has a value that is not the name of an optional part.",
		Do:      "Use a name from the error code, or leave the parameter out.",
	}, problem{Status: 400, Message: "include names an optional part of the body, such as ?include=" + includeEvidence + "."})
	errLimit = newError(errorPage{
		Code: fmt.Sprintf("limit must be between 1 and %d", api.HistoryMax), Slug: "limit",
		Meaning: "The query parameter limit of a history is not a whole number within its bounds.",
		Do:      "Use a limit within the bounds, and next_cursor to read further pages.",
	}, problem{Status: 400, Message: "limit is the number of records per page, a whole number."})
	errInvalidCursor = newError(errorPage{
		Code:    "invalid_cursor",
		Meaning: "The query parameter cursor of a history is not a cursor of this company.",
		Do:      "Send next_cursor of the previous page unchanged. To start again, send no cursor.",
	}, problem{Status: 400, Message: "Send next_cursor of the previous page unchanged, for the same company."})
	errFrom = newError(errorPage{
		Code:    "from invalid",
		Meaning: "The query parameter from is not an instant or a date, is later than to, or is too long before it.",
		Do:      "Use an instant of RFC 3339 or a date such as 2026-05-01.",
	}, problem{Status: 400, Message: "from is an instant such as 2026-05-01T00:00:00Z, or a date."})
	errFromAfterTo = errFrom.also(problem{Status: 400, Message: "from must not be after to."})
	errSpan        = errFrom.also(problem{Status: 400, Message: fmt.Sprintf("from must be at most %d days before to.", usageDaysMax)})
	errTo          = newError(errorPage{
		Code:    "to invalid",
		Meaning: "The query parameter to is not an instant or a date.",
		Do:      "Use an instant of RFC 3339 or a date such as 2026-05-31.",
	}, problem{Status: 400, Message: "to is an instant such as 2026-05-31T00:00:00Z, or a date."})
	errAsOf = newError(errorPage{
		Code:    "as_of invalid",
		Meaning: "The query parameter as_of is not an instant or a date.",
		Do:      "Use an instant of RFC 3339 or a date such as 2026-05-01. Without the parameter the answer is about the newest score.",
	}, problem{Status: 400, Message: "as_of is an instant such as 2026-05-01T00:00:00Z, or a date."})
	errOrder = newError(errorPage{
		Code:    "order invalid",
		Meaning: "The query parameter order of a history is neither newest nor oldest.",
		Do:      "Use newest, which is the default, or oldest.",
	}, problem{Status: 400, Message: "order is newest or oldest."})
	errFormat = newError(errorPage{
		Code:    "format invalid",
		Meaning: "The query parameter format names a format that the address does not have.",
		Do:      "Use json, which is the default, ndjson or csv.",
	}, problem{Status: 400, Message: "format is json, ndjson or csv."})
	errJobIDs = newError(errorPage{
		Code:    "ids invalid",
		Meaning: "The query parameter ids is missing, is not a list of ids of jobs, has an id twice, or has too many.",
		Do:      "Separate ids by commas. Split a long list into several requests.",
	}, problem{Status: 400, Message: fmt.Sprintf("ids is a list of 1 to %d ids of jobs, separated by commas.", jobsMax)})
	errWindow = newError(errorPage{
		Code: "window must be one of ['" + strings.Join(windows, "','") + "']", Slug: "window",
		Meaning: "The query parameter window of the movers is missing or unknown.",
		Do:      "Use one of the windows in the error code.",
	}, problem{Status: 400, Message: "Set the window over which the delta is measured, such as ?window=30d."})
	errBy = newError(errorPage{
		Code: "by must be one of ['" + strings.Join(usageGroupings, "','") + "']", Slug: "by",
		Meaning: "The query parameter by of the usage history is unknown.",
		Do:      "Use one of the groupings in the error code.",
	}, problem{Status: 400, Message: "by names what requests are counted by, such as ?by=day."})
	errIdempotencyKey = newError(errorPage{
		Code:    "idempotency_key invalid",
		Meaning: "The Idempotency-Key header is too long, or has characters other than printable ASCII.",
		Do:      "Use a short random name for each request, such as a UUID.",
	}, problem{Status: 400, Message: fmt.Sprintf("An Idempotency-Key has at most %d printable ASCII characters.", idempotencyKeyMax)})
	errUnauthorized = newError(errorPage{
		Code:    "unauthorized",
		Meaning: "The X-API-Key header is missing, or the key is malformed, unknown or revoked.",
		Do:      "Check that the whole key is sent. A key is shown once, when it is created. If it is lost or revoked, create another.",
	}, problem{Status: 401, Message: "Send a valid API key in the X-API-Key header."})
	errBearer = errUnauthorized.also(problem{
		Status:  401,
		Message: "Send the API key in the X-API-Key header. The Authorization header is not read.",
	})
	errFreeTier = newError(errorPage{
		Code:    "free_tier_sandbox_only",
		Meaning: "An account of the free tier asked to score a real company. The free tier scores the sandbox only.",
		Do:      "Upgrade the account, or use a test key and a sandbox domain. GET /v1/score/{domain} reads stored scores on every tier.",
	}, problem{Status: 403, Message: "The free tier scores sandbox domains only. Upgrade to score real companies.", Tier: account.Free})
	errForbidden = newError(errorPage{
		Code:    "forbidden",
		Meaning: "The job was started by another account. Only keys of the account that started a job can read it.",
		Do:      "Use a key of the account that made the request.",
	}, problem{Status: 403, Message: "This job belongs to another account."})
	errNotFound = newError(errorPage{
		Code:    "not found",
		Meaning: "The address does not exist.",
		Do:      "Compare the address with the description at /docs. All operations are below /v1.",
	}, problem{Status: 404, Message: "This address does not exist."})
	errNoScore = newError(errorPage{
		Code:    "no score available for this domain",
		Meaning: "The company has no stored score, or none at or before as_of. In a batch this is the answer for its entry only.",
		Retry:   "Only after a run of the company has ended. This request starts none.",
		Do:      "Start a run with POST /v1/score, poll its job, and then read the score.",
	}, problem{Status: 404, Message: "This company was never scored. POST /v1/score starts a run."})
	errNoHistory = newError(errorPage{
		Code:    "no_history",
		Meaning: "The company has no stored score, or none at or before the instant that the request names.",
		Retry:   "Only after a run of the company has ended. This request starts none.",
		Do:      "Start a run with POST /v1/score, or choose a later instant. The last page of the history has the first score.",
	}, problem{Status: 404, Message: "This company was never scored. POST /v1/score starts a run."})
	errNoRecord = errNoHistory.also(problem{
		Status:  404,
		Message: "There is no score of this company at or before from. Its history has the first one.",
	})
	errNoScoreThen = errNoScore.also(problem{
		Status:  404,
		Message: "There is no score of this company at or before as_of. Its history has the first one.",
	})
	errJobNotFound = newError(errorPage{
		Code:    "job not found",
		Meaning: "The job does not exist, or it has expired. Jobs expire 30 days after they were created. The sandbox has no jobs.",
		Do:      "Read the score of the company with GET /v1/score/{domain}. Request it again with POST /v1/score if it is too old.",
	}, problem{Status: 404, Message: "The job does not exist or has expired."})
	errMethod = newError(errorPage{
		Code:    "method not allowed",
		Meaning: "The address exists, but not with this method.",
		Do:      "Use a method from the Allow header.",
	}, problem{Status: 405, Message: "This address does not support the method."})
	errTimeout = newError(errorPage{
		Code:    "request timeout",
		Meaning: "The request did not arrive within 15 seconds. The server closes the connection.",
		Retry:   "Yes, on a new connection.",
		Do:      "Send the request at once. Check the network if this happens often.",
	}, problem{Status: 408, Message: "The request did not arrive in time."})
	errTooLarge = newError(errorPage{
		Code:    "request too large",
		Meaning: "The body is too large (413), or the address and the headers are too large (431).",
		Do:      "Split a large batch into several requests. Remove headers and cookies that this service does not need.",
	}, problem{Status: 413, Message: "The request is larger than this service accepts."})
	errHeadersTooLarge = errTooLarge.also(problem{
		Status:  431,
		Message: "The headers of the request are larger than this service accepts.",
	})
	errEncoding = newError(errorPage{
		Code:    "content encoding not supported",
		Meaning: "The body has a Content-Encoding. The service reads uncompressed bodies only.",
		Do:      "Switch off the compression of request bodies in your client. Answers can still be compressed.",
	}, problem{Status: 415, Message: "Send the body uncompressed, without Content-Encoding."})
	errIdempotencyReused = newError(errorPage{
		Code:    "idempotency_key_reused",
		Meaning: "The Idempotency-Key was used with a request for another company or with another force_fresh.",
		Do:      "Use a new key for each new request. Use the same key only to repeat the same request.",
	}, problem{
		Status:  422,
		Message: "This Idempotency-Key was used with another request within the last 24 hours. Use a new key for a new request.",
	})
	errBudgetExhausted = newError(errorPage{
		Code:    "cold_budget_exhausted",
		Meaning: "The account has used all cold calls of this month.",
		Retry:   "Yes, after the seconds in the Retry-After header: at the start of the next month in UTC.",
		Do: "Read stored scores with GET /v1/score/{domain}, which need no cold call, or upgrade the account. The RateLimit header " +
			"of every answer shows the rest of the budget.",
	}, problem{
		Status: 429, Reason: string(meter.MonthlyCap), RetryAfter: 28 * 24 * 3600,
		Message: "The cold calls of this month are used up.",
	})
	errKeyCold = newError(errorPage{
		Code: "rate limited",
		Meaning: "A limit is reached. The reason names it: per_key_cold_1h is the cold calls of a key in an hour, account_cold_24h " +
			"those of an account in 24 hours, answer_bytes the bytes of answers that a key has not read yet. Without a reason it is the " +
			"number of requests per second.",
		Retry: retryAfter,
		Do:    "Spread cold calls over time. Read answers as they arrive, and send fewer requests at once.",
	}, problem{
		Status: 429, Reason: string(meter.PerKeyCold1h), RetryAfter: 1800,
		Message: "This key has reached its limit of cold calls per hour.",
	})
	errAccountCold = errKeyCold.also(problem{
		Status: 429, Reason: string(meter.AccountCold24h), RetryAfter: 11 * 3600,
		Message: "This account has reached its limit of cold calls per 24 hours.",
	})
	errKeyAnswers = errKeyCold.also(problem{
		Status: 429, Reason: "answer_bytes", RetryAfter: 1,
		Message: "Unread answers to this key have reached its limit of bytes. Read them, or send fewer requests at once.",
	})
	_ = errKeyCold.also(problem{ // of the proxy
		Status: 429, RetryAfter: 1,
		Message: "This key sends more requests than it may. Try again in a moment.",
	})
	errAddressConnections = newError(errorPage{
		Code:    "too many connections",
		Meaning: "Your address (429) or the whole server (503) has reached its limit of connections.",
		Retry:   retryAfter,
		Do:      "Keep connections open and use each for many requests.",
	}, problem{
		Status: 429, RetryAfter: 1,
		Message: "This address has reached its limit of connections. Reuse connections for several requests.",
	})
	errConnections = errAddressConnections.also(problem{
		Status: 503, RetryAfter: 1,
		Message: "The server has reached its limit of connections. Try again in a moment.",
	})
	errInternal = newError(errorPage{
		Code:    "internal error",
		Meaning: "The server failed. The cause is in its log, under the id of the request.",
		Retry:   "Yes, after a few seconds. Double the pause after each further failure.",
		Do:      "If it lasts, give support the id in the message. It is also in the X-Request-Id header.",
	}, problem{Status: 500, Message: fmt.Sprintf(internalMessage, "01a1fc94-100b-728c-b5ba-54b776aba535")})
	errEngine = newError(errorPage{
		Code:    "scoring engine unavailable",
		Meaning: "The server could not start the scoring run, or does not know whether it was started. The message says which.",
		Charged: "No, if the message says so. Otherwise it is not known, and the service tries to refund the call.",
		Retry:   "Yes, after a few seconds, with the same Idempotency-Key. Double the pause after each further failure.",
		Do:      "Send an Idempotency-Key with every POST /v1/score. A repeated request is then charged at most once.",
	}, problem{Status: 500, Message: "This request started no scoring run and was not charged. Try again in a moment."})
	errOutcomeUnknown = errEngine.also(problem{
		Status: 500,
		Message: "It is not known whether the scoring run was started and charged. If it was, the service tries to refund it. With an " +
			"Idempotency-Key a repeated request is charged at most once.",
	})
	errOutcomeOfKey = errEngine.also(problem{
		Status: 500,
		Message: "It is not known whether the scoring run was started and charged. Repeat the request with the same Idempotency-Key: " +
			"it is charged at most once.",
	})
	errSandboxInvariant = newError(errorPage{
		Code:    "sandbox_invariant_violated",
		Meaning: "A test key reached code for live data. This is a defect of the service. The request was stopped.",
		Do:      "Report it with the X-Request-Id of the answer.",
	}, problem{Status: 500, Message: "A request with a test key reached live data. Nothing was returned or charged. Please report it."})
	errCoding = newError(errorPage{
		Code:    "transfer coding not supported",
		Meaning: "The Transfer-Encoding of the request is not chunked. The server closes the connection.",
		Do:      "Send the body with a Content-Length, or chunked.",
	}, problem{Status: 501, Message: "The only supported Transfer-Encoding is chunked."})
	errNotCounted = newError(errorPage{
		Code: "universe not counted yet",
		Meaning: "The server has just started and the first count of all companies has not ended. Cohorts, movers and the " +
			"distribution need it.",
		Retry: retryAfter,
		Do:    "Wait. Scores and jobs work in the meantime.",
	}, problem{Status: 503, Message: "The first count of all companies has not ended. Try again in a few seconds.", RetryAfter: 5})
	errAllAnswers = newError(errorPage{
		Code: "overloaded",
		Meaning: "The requests or the answers in flight have reached the server's limit of bytes, or histories of requests are read " +
			"for others. An account has one at a time.",
		Retry: retryAfter,
		Do:    "Send fewer large requests at once. Read histories of requests one after the other.",
	}, problem{Status: 503, Message: "The answers in flight have reached the server's limit of bytes. Try again in a moment.",
		RetryAfter: 1})
	errAllBodies = errAllAnswers.also(problem{
		Status: 503, RetryAfter: 1,
		Message: "The requests in flight have reached the server's limit of bytes. Try again in a moment.",
	})
	errHistories = errAllAnswers.also(problem{
		Status: 503, RetryAfter: 1,
		Message: "Other histories of requests are read. Try again in a moment.",
	})
	_ = newError(errorPage{ // of the proxy
		Code:    "unavailable",
		Meaning: "The proxy in front of the service got no answer from any server.",
		Charged: "It is not known. A server may have counted the call before its answer was lost.",
		Retry:   retryAfter + " Repeat a POST /v1/score with the same Idempotency-Key only.",
		Do:      "If it lasts, give support the X-Request-Id of the answer.",
	}, problem{Status: 503, Message: "No server answered. It is not known whether the request was executed.", RetryAfter: 1})
)

// rejected returns the problem of a rejected cold call. Its pause replaces the example of the page.
func rejected(r *meter.Rejected) *problem {
	p := errBudgetExhausted
	switch r.Reason {
	case meter.PerKeyCold1h:
		p = errKeyCold
	case meter.AccountCold24h:
		p = errAccountCold
	}
	p.RetryAfter = int(math.Ceil(r.RetryAfter.Seconds()))
	return &p
}

// rejectedMany is rejected for a request that needs n cold calls.
func rejectedMany(r *meter.Rejected, n int) *problem {
	p := rejected(r)
	p.Message = fmt.Sprintf("The request needs %d cold calls, and the limit %s leaves %d. Nothing was started.", n, r.Reason, r.Room)
	if r.Room > 0 {
		p.Message += " Ask for fewer companies, or set partial to start as many as the limit allows."
	}
	return p
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
	return errInternal.with(internalMessage, request)
}
