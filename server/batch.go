package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"

	"companyscore/server/account"
	"companyscore/server/api"
	"companyscore/server/cache"
)

// batchMax is how many companies one call may ask for.
const batchMax = 1000

// batchBodyMax bounds the body of such a call: a thousand domains of full length.
const batchBodyMax = 512 << 10

// item is one company of a batch, in the order of the request.
type item struct {
	domain  string // canonical, or as it was sent if it is none
	problem *problem
}

// postBatch returns the stored scores of many companies. It never starts a run.
func (s *Server) postBatch(c *fiber.Ctx) error {
	who := callerOf(c)
	if err := plainBody(c, batchBodyMax); err != nil {
		return err
	}
	raw, err := parseBatchRequest(c.BodyRaw())
	if err != nil {
		return err
	}
	items := make([]item, len(raw))
	var wanted []string
	for i, text := range raw {
		domain, err := canonical(who.Mode, text, errItemDomain)
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
	bodies := make(map[string]rendered, len(wanted))
	from := tierSandbox
	if who.Mode == account.Test {
		for _, domain := range wanted {
			bodies[domain] = s.cannedBody(domain, who.Account.Tier)
		}
	} else {
		ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
		defer cancel()
		var entries map[string]cache.Entry
		var tier cache.Tier
		if entries, tier, err = s.Cache.Many(ctx, wanted); err != nil {
			return err
		}
		from = tierOfCache[tier]
		for domain, e := range entries {
			if e.Found() {
				bodies[domain] = s.scoreBody(e, who.Account.Tier)
			}
		}
	}
	now := s.now()
	for i := range items {
		if items[i].problem != nil {
			continue
		}
		if _, ok := bodies[items[i].domain]; !ok {
			items[i].problem = &errNoScore
		} else if who.Mode == account.Live {
			s.Meter.CountCached(who.Account, now)
		}
	}
	mark(c, from)
	c.Set(fiber.HeaderCacheControl, noStore)
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) { writeBatch(w, who.Mode, items, bodies) })
	return nil
}

// writeBatch writes the body item by item. An error of the connection stays in w.
func writeBatch(w *bufio.Writer, mode account.Mode, items []item, bodies map[string]rendered) {
	w.WriteByte('{')
	if mode == account.Test {
		fmt.Fprintf(w, `"mode":%q,`, api.Sandbox)
	}
	w.WriteString(`"results":[`)
	for i, it := range items {
		if i > 0 {
			w.WriteByte(',')
		}
		if it.problem == nil {
			// As json.Marshal has it, without reading the score once more: a canonical
			// domain has nothing to escape.
			w.WriteString(`{"domain":"`)
			w.WriteString(it.domain)
			w.WriteString(`","status":200,"score":`)
			w.Write(bodies[it.domain].body)
			w.WriteByte('}')
			continue
		}
		b, err := json.Marshal(api.BatchItem{
			Domain: it.domain, Status: it.problem.Status, Error: &api.Error{Code: it.problem.Code, Message: it.problem.Message},
		})
		if err != nil {
			return // nothing of ours cannot be written
		}
		w.Write(b)
	}
	w.WriteString("]}")
}

// parseBatchRequest reads the body of POST /v1/scores/batch. The texts are copies.
func parseBatchRequest(body []byte) ([]string, error) {
	var fields struct {
		Domains *[]string `json:"domains"`
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && strings.HasPrefix(kind.Field, "domains") {
			return nil, &errBodyDomains
		}
		return nil, errBodyInvalid.with("The body must be a JSON object such as {\"domains\": [\"example.com\"]}: %v.", err)
	}
	switch {
	case fields.Domains == nil:
		return nil, &errDomainsRequired
	case len(*fields.Domains) == 0 || len(*fields.Domains) > batchMax:
		return nil, &errBodyDomains
	}
	return *fields.Domains, nil
}
