package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/meter"
)

// bulkRequest is the body of POST /v1/scores.
type bulkRequest struct {
	domains                               []string
	partial, dryRun, forceFresh, evidence bool
}

// postScores answers with the stored scores of many companies that are fresh enough for the caller, and
// starts a run for each of the others: for all, or for as many as the limits allow.
func (s *Server) postScores(c *fiber.Ctx) error {
	who := callerOf(c)
	if err := plainBody(c, batchBodyMax); err != nil {
		return err
	}
	req, err := parseBulkRequest(c.BodyRaw())
	if err != nil {
		return err
	}
	items, err := bulkItems(who.Mode, req.domains)
	if err != nil {
		return err
	}
	plan := who.Account.Plan
	if who.Mode == account.Live && plan == account.Free {
		return &errFreeTier
	}
	many := meter.BulkRequest{Account: who.Account, KeyID: who.KeyID, Now: s.now(), Partial: req.partial}
	for _, it := range items {
		many.Domains = append(many.Domains, it.domain)
	}
	if many.IdempotencyKey, err = idempotencyKey(c); err != nil {
		return err
	}
	forced := req.forceFresh && plan == account.Enterprise
	many.BodyHash = bulkHash(many.Domains, forced, req.partial)
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	if err := s.reserveAnswer(c, ctx, batchSizeMax(items)); err != nil { // before anything is charged
		return err
	}
	var call bulkCall
	from := originSandbox
	if who.Mode == account.Live {
		run := s.Calls.many
		if req.dryRun {
			run = s.Calls.dry
		}
		if call, err = run(ctx, many, forced); err != nil {
			return err
		}
		from = originOfLevel[call.level]
	}
	summary := settleItems(items, call, who.Mode, req.dryRun)
	mark(c, from)
	c.Set(fiber.HeaderCacheControl, noStore)
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	if summary.Started > 0 && !req.dryRun {
		c.Set(fiber.HeaderRetryAfter, retryPoll)
		c.Status(fiber.StatusAccepted)
	}
	head, err := json.Marshal(api.Bulk{Mode: modeOf(who.Mode), DryRun: req.dryRun, Summary: summary})
	if err != nil {
		return err
	}
	body := append(make([]byte, 0, len(items)*512), strings.TrimSuffix(string(head), `"results":null}`)...)
	return c.Send(append(s.appendResults(body, who, items, call.stored, req.evidence), '}'))
}

// modeOf returns the field mode of an answer.
func modeOf(mode account.Mode) string {
	if mode == account.Test {
		return api.Sandbox
	}
	return ""
}

// bulkItems returns an item for each domain of a request. The error names the first domain that cannot be
// scored or is there twice.
func bulkItems(mode account.Mode, raw []string) ([]item, error) {
	items := make([]item, len(raw))
	seen := make(map[string]int, len(raw))
	for i, text := range raw {
		domain, err := canonical(mode, text, errBodyDomains)
		if err != nil {
			var p *problem
			if errors.As(err, &p) {
				err = p.with("domains[%d]: %s", i, p.Message)
			}
			return nil, err
		}
		if first, ok := seen[domain]; ok {
			return nil, errBodyDomains.with("domains[%d] and domains[%d] are the same company, %s.", first, i, domain)
		}
		seen[domain] = i
		items[i] = item{domain: domain}
	}
	return items, nil
}

// settleItems writes the results of a call to its items and counts them. All items of the sandbox are stored.
func settleItems(items []item, call bulkCall, mode account.Mode, dry bool) api.BulkSummary {
	var sum api.BulkSummary
	refused := rejected(&meter.Rejected{Reason: call.rest})
	for i := range items {
		it := &items[i]
		job, started := call.jobs[it.domain]
		switch {
		case started:
			sum.Started++
			if it.job = job; dry {
				it.only = fiber.StatusAccepted
			}
		case mode == account.Test || call.stored[it.domain].Found():
			sum.Stored++
			if dry {
				it.only = fiber.StatusOK
			}
		default:
			sum.Refused++
			it.problem = refused
		}
	}
	return sum
}

// parseBulkRequest reads the body of POST /v1/scores. It ignores unknown fields, which newer clients may send.
func parseBulkRequest(body []byte) (bulkRequest, error) {
	domains, evidence, err := parseBatchRequest(body)
	if err != nil {
		return bulkRequest{}, err
	}
	var fields struct {
		Partial    *bool `json:"partial"`
		DryRun     *bool `json:"dry_run"`
		ForceFresh *bool `json:"force_fresh"`
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return bulkRequest{}, errBodyInvalid.with("%s must be true or false.", kind.Field)
		}
		return bulkRequest{}, &errBodyInvalid
	}
	is := func(b *bool) bool { return b != nil && *b }
	return bulkRequest{domains: domains, partial: is(fields.Partial), dryRun: is(fields.DryRun), forceFresh: is(fields.ForceFresh),
		evidence: evidence}, nil
}

// bulkHash is requestHash for a call for many companies. It differs from that of each call for one.
func bulkHash(domains []string, forced, partial bool) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join(domains, "\n") + "\n\x00" + strconv.FormatBool(forced) + "\x00" + strconv.FormatBool(partial)))
}
