package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/cache"
	"companyscore/server/job"
	"companyscore/server/meter"
	"companyscore/server/sandbox"
	"companyscore/universe"
)

// scoreAge is the max-age of a score.
const scoreAge = 30 * time.Second

var scoreCacheControl = cacheControl(scoreAge)

// scoreBody returns the body of a live score, with its evidence if wanted.
func (s *Server) scoreBody(e cache.Entry, evidence bool, plan account.Plan) rendered {
	return tagged(s.appendScore(nil, e, evidence, plan))
}

// appendScore appends the body of a live score, with its evidence if wanted.
func (s *Server) appendScore(dst []byte, e cache.Entry, evidence bool, plan account.Plan) []byte {
	var place *api.Rank
	if t := s.Universe.Tables(s.now()); t != nil {
		if rank, ok := rankOf(e, t); ok {
			place = &rank
		}
	}
	return api.AppendScore(dst, "", e.Head, place, evidenceOf(e, evidence), s.tails[plan])
}

// evidenceOf returns the evidence of a score if wanted, else nil.
func evidenceOf(e cache.Entry, wanted bool) *api.Evidence {
	if !wanted {
		return nil
	}
	evidence := e.Evidence()
	return &evidence
}

// rankOf returns the rank of a score. It returns false if the score has another pipeline
// version than the tables, or too little data to be counted in them, and if nothing is counted yet.
func rankOf(e cache.Entry, tables *universe.Tables) (api.Rank, bool) {
	if string(e.Version) != tables.PipelineVersion() || e.CompletenessPct() < tables.MinDataPct() {
		return api.Rank{}, false
	}
	percentile, size := tables.Rank(e.Composite)
	return api.Rank{Percentile: percentile, CohortSize: size}, size > 0
}

// cannedBody returns the body of a sandbox score, with its evidence if wanted.
func (s *Server) cannedBody(domain string, evidence bool, plan account.Plan) rendered {
	return tagged(s.appendCanned(nil, domain, evidence, plan))
}

// appendCanned appends the body of a sandbox score, with its evidence if wanted.
func (s *Server) appendCanned(dst []byte, domain string, evidence bool, plan account.Plan) []byte {
	rec, _ := sandbox.Score(domain, s.now())
	rank := sandbox.Rank(rec.Composite)
	return api.AppendScore(dst, api.Sandbox, api.ScoreHead(rec), &rank, evidenceOf(cache.NewEntry(rec), evidence), s.tails[plan])
}

func (s *Server) callerBody(plan account.Plan) api.Caller {
	return api.Caller{Tier: string(plan), CacheStatus: api.Cached, FreshnessWindowHours: s.Meter.Limits(plan).FreshnessWindow.Hours()}
}

// postScore returns a stored score that is fresh enough for the caller, or
// starts a run and returns the job to poll.
func (s *Server) postScore(c *fiber.Ctx) error {
	who := callerOf(c)
	if err := plainBody(c, scoreBodyMax); err != nil {
		return err
	}
	req, err := parseScoreRequest(c.BodyRaw())
	if err != nil {
		return err
	}
	if req.wait {
		waitField.announce(c)
	}
	domain, err := canonical(who.Mode, req.domain, errBodyDomain)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, noStore)
	if who.Mode == account.Test {
		return s.sendInline(c, s.cannedBody(domain, req.evidence, who.Account.Plan), originSandbox)
	}
	plan := who.Account.Plan
	if plan == account.Free {
		return &errFreeTier
	}
	forced := req.forceFresh && plan == account.Enterprise
	admit := meter.AdmitRequest{Account: who.Account, KeyID: who.KeyID, Domain: domain, Now: s.now()}
	if admit.IdempotencyKey, err = idempotencyKey(c); err != nil {
		return err
	}
	admit.BodyHash = requestHash(domain, forced)
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	entry, from, admission, err := s.Calls.freshOrAdmit(ctx, admit, forced)
	switch {
	case err != nil:
		return err
	case entry.Found():
		return s.sendInline(c, s.scoreBody(entry, req.evidence, plan), originOfLevel[from])
	}
	return s.accepted(c, admission)
}

// accepted answers 202 with the job of a cold call.
func (s *Server) accepted(c *fiber.Ctx, a meter.Admission) error {
	c.Locals(admissionLocal, a)
	c.Set(fiber.HeaderRetryAfter, retryPoll)
	c.Set(fiber.HeaderLocation, "/v1/jobs/"+a.JobID)
	return c.Status(fiber.StatusAccepted).JSON(acceptedJob(a.JobID, a.Domain))
}

func acceptedJob(id, domain string) api.Accepted {
	return api.Accepted{JobID: id, Status: string(job.Pending), Domain: domain, PollURL: "/v1/jobs/" + id}
}

// postOnly refuses all methods but POST.
func postOnly(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, fiber.MethodPost)
	return &errMethod
}

// getScore returns the newest stored score of a company, however old.
func (s *Server) getScore(c *fiber.Ctx) error {
	who := callerOf(c)
	domain, err := pathDomain(who.Mode, c.Params("*"))
	if err != nil {
		return err
	}
	evidence, err := queryIncludes(c)
	if err != nil {
		return err
	}
	at, err := queryAsOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	switch {
	case !at.IsZero():
		err := s.sendScoreAsOf(c, ctx, domain, at, evidence)
		s.countScore(c)
		return err
	case who.Mode == account.Test:
		return s.sendRendered(c, s.cannedBody(domain, evidence, who.Account.Plan), replyInfo{origin: originSandbox, maxAge: scoreAge})
	}
	entry, from, err := s.Cache.Get(ctx, domain)
	if err != nil {
		return err
	}
	if !entry.Found() {
		return &errNoScore
	}
	if err := s.sendRendered(c, s.scoreBody(entry, evidence, who.Account.Plan), replyInfo{origin: originOfLevel[from],
		maxAge: scoreAge}); err != nil {
		return err
	}
	s.countScore(c)
	return nil
}

// countScore counts a cached call of a live key if the answer has a score.
func (s *Server) countScore(c *fiber.Ctx) {
	if who := callerOf(c); who.Mode == account.Live && c.Response().StatusCode() == fiber.StatusOK && c.Method() == fiber.MethodGet {
		s.Meter.CountCached(who.Account, s.now())
	}
}

// sendInline answers a POST with a score.
func (s *Server) sendInline(c *fiber.Ctx, r rendered, from origin) error {
	mark(c, from)
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(r.body)
}

// plainBody returns a problem if the body is larger than most bytes or has a
// Content-Encoding. Fiber decompresses bodies without a limit.
func plainBody(c *fiber.Ctx, most int) error {
	if encoding := c.Get(fiber.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return &errEncoding
	}
	if len(c.BodyRaw()) > most {
		return &errTooLarge
	}
	return nil
}

// scoreBodyMax bounds the body of POST /v1/score, in bytes.
const scoreBodyMax = 64 << 10

type scoreRequest struct {
	domain     string
	forceFresh bool
	evidence   bool
	wait       bool // whether the body has the deprecated field wait
}

// parseScoreRequest reads the body of POST /v1/score. It ignores unknown fields, which
// newer clients may send, and the value of the field wait, which older clients send.
func parseScoreRequest(body []byte) (scoreRequest, error) {
	var fields struct {
		Domain     json.RawMessage `json:"domain"`
		ForceFresh *bool           `json:"force_fresh"`
		Include    []string        `json:"include"`
		Wait       json.RawMessage `json:"wait"`
	}
	err := json.Unmarshal(body, &fields)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped) && mistyped.Field == "force_fresh":
		return scoreRequest{}, errBodyInvalid.with("force_fresh must be true or false.")
	case errors.As(err, &mistyped) && strings.HasPrefix(mistyped.Field, "include"):
		return scoreRequest{}, &errBodyInclude
	case errors.As(err, &mistyped):
		return scoreRequest{}, &errBodyInvalid
	case err != nil:
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
	evidence, err := bodyIncludes(fields.Include)
	if err != nil {
		return scoreRequest{}, err
	}
	return scoreRequest{domain: domain, forceFresh: fields.ForceFresh != nil && *fields.ForceFresh, evidence: evidence,
		wait: fields.Wait != nil}, nil
}

const idempotencyKeyMax = 255

// idempotencyKey returns the Idempotency-Key of the request, empty if it has none.
func idempotencyKey(c *fiber.Ctx) (string, error) {
	key := strings.Clone(c.Get("Idempotency-Key"))
	if len(key) > idempotencyKeyMax {
		return "", &errIdempotencyKey
	}
	for _, b := range []byte(key) {
		if b < ' ' || b > '~' {
			return "", &errIdempotencyKey
		}
	}
	return key, nil
}

// requestHash returns a hash of the parsed request. Bodies with the same meaning have the
// same hash.
func requestHash(domain string, forced bool) [sha256.Size]byte {
	return sha256.Sum256([]byte(domain + "\x00" + strconv.FormatBool(forced)))
}
