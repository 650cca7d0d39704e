package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/cache"
	"companyscore/server/keys"
)

// batchMax bounds the companies of one batch call.
const batchMax = 1000

// batchBodyMax bounds the body of such a call: a thousand domains of full length.
const batchBodyMax = 512 << 10

// item is one company of a call for many, in the order of the request.
type item struct {
	domain  string // canonical, or as it was sent if it is none
	problem *problem
	job     string // id, empty if none was started
	only    int    // the status of an item of a dry run, which has nothing else
}

// postBatch returns the stored scores of many companies. It never starts a run.
func (s *Server) postBatch(c *fiber.Ctx) error {
	who := callerOf(c)
	if err := plainBody(c, batchBodyMax); err != nil {
		return err
	}
	raw, evidence, err := parseBatchRequest(c.BodyRaw())
	if err != nil {
		return err
	}
	items := make([]item, len(raw))
	var wanted []string
	for i, text := range raw {
		domain, err := canonical(who.Mode, text, errDomain)
		if err != nil {
			var p *problem
			if !errors.As(err, &p) {
				return err
			}
			items[i] = item{domain: text, problem: p}
			continue
		}
		items[i] = item{domain: domain}
		wanted = append(wanted, domain)
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	if err := s.reserveAnswer(c, ctx, batchSizeMax(items)); err != nil {
		return err
	}
	from := originSandbox
	var entries map[string]cache.Entry
	if who.Mode == account.Live {
		var level cache.Level
		if entries, level, err = s.Cache.Many(ctx, wanted); err != nil {
			return err
		}
		from = originOfLevel[level]
	}
	now := s.now()
	for i := range items {
		if items[i].problem != nil || who.Mode == account.Test {
			continue
		}
		if entries[items[i].domain].Found() {
			s.Meter.CountCached(who.Account, now)
		} else {
			items[i].problem = &errNoScore
		}
	}
	mark(c, from)
	c.Set(fiber.HeaderCacheControl, noStore)
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(s.batchBody(who, items, entries, evidence))
}

// batchSizeMax returns a size in bytes that the answer does not exceed.
func batchSizeMax(items []item) int {
	const each = 1 << 10 // score, names of fields and messages, without what the caller sent
	n := each
	for _, it := range items {
		if it.problem == nil {
			n += each + 2*len(it.domain)
		} else {
			// The text, escaped for JSON, and in the message quoted before that.
			n += each + (6+12)*len(it.domain)
		}
	}
	return n
}

// batchBody returns the body of an answer, with the evidence of each score if wanted. What it returns for an item is what json.Marshal
// makes of an [api.BatchItem]: a canonical domain has nothing to escape.
func (s *Server) batchBody(who keys.Caller, items []item, entries map[string]cache.Entry, evidence bool) []byte {
	body := make([]byte, 0, len(items)*512)
	body = append(body, '{')
	if who.Mode == account.Test {
		body = append(body, `"mode":"`+api.Sandbox+`",`...)
	}
	return append(s.appendResults(body, who, items, entries, evidence), '}')
}

// appendResults appends the field results of an answer about many companies.
func (s *Server) appendResults(body []byte, who keys.Caller, items []item, entries map[string]cache.Entry, evidence bool) []byte {
	body = append(body, `"results":[`...)
	for i, it := range items {
		if i > 0 {
			body = append(body, ',')
		}
		if short, ok := it.withoutScore(); ok {
			b, err := json.Marshal(short)
			if err != nil {
				panic("server: item of a batch: " + err.Error()) // it is made of strings
			}
			body = append(body, b...)
			continue
		}
		body = append(body, `{"domain":"`...)
		body = append(body, it.domain...)
		body = append(body, `","status":200,"score":`...)
		if who.Mode == account.Test {
			body = s.appendCanned(body, it.domain, evidence, who.Account.Plan)
		} else {
			body = s.appendScore(body, entries[it.domain], evidence, who.Account.Plan)
		}
		body = append(body, '}')
	}
	return append(body, ']')
}

// withoutScore returns the item of an answer if it has no score.
func (it item) withoutScore() (api.BatchItem, bool) {
	switch {
	case it.problem != nil:
		problem := it.problem.body()
		return api.BatchItem{Domain: it.domain, Status: it.problem.Status, Error: &problem}, true
	case it.only != 0:
		return api.BatchItem{Domain: it.domain, Status: it.only}, true
	case it.job != "":
		job := acceptedJob(it.job, it.domain)
		return api.BatchItem{Domain: it.domain, Status: fiber.StatusAccepted, Job: &job}, true
	}
	return api.BatchItem{}, false
}

// parseBatchRequest reads the body of POST /v1/scores/batch: the domains, which are copies, and
// whether it asks for the evidence.
func parseBatchRequest(body []byte) (domains []string, evidence bool, err error) {
	var fields struct {
		Domains *[]string `json:"domains"`
		Include []string  `json:"include"`
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && strings.HasPrefix(kind.Field, "domains") {
			return nil, false, &errBodyDomains
		}
		if errors.As(err, &kind) && strings.HasPrefix(kind.Field, "include") {
			return nil, false, &errBodyInclude
		}
		return nil, false, errBodyInvalid.with("The body must be a JSON object such as {\"domains\": [\"example.com\"]}: %v.", err)
	}
	switch {
	case fields.Domains == nil:
		return nil, false, &errDomainsRequired
	case len(*fields.Domains) == 0 || len(*fields.Domains) > batchMax:
		return nil, false, &errBodyDomains
	}
	evidence, err = bodyIncludes(fields.Include)
	return *fields.Domains, evidence, err
}
