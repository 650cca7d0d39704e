package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/sandbox"
)

// historyAge is the max-age of a page of history.
const historyAge = 30 * time.Second

// historyRecordMax bounds the size of one record of a page, in bytes.
const historyRecordMax = 1 << 10

// getHistory returns one page of a company's records.
func (s *Server) getHistory(c *fiber.Ctx) error {
	who := callerOf(c)
	domain, err := pathDomain(who.Mode, c.Params("*"))
	if err != nil {
		return err
	}
	page, err := historyPage(c, domain, s.now())
	if err != nil {
		return err
	}
	format, err := historyFormat(c)
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		records, _ := sandbox.History(domain, page, s.now())
		body := api.NewHistory(domain, page, records)
		body.Mode = api.Sandbox
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		return s.sendHistory(c, text, format, replyInfo{origin: originSandbox, maxAge: historyAge})
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	if err := s.reserveAnswer(c, ctx, page.Limit*historyRecordMax); err != nil {
		return err
	}
	key := fmt.Sprintf("history %d %d %d %t", page.Limit, page.From.UnixMilli(), page.To.UnixMilli(), page.OldestFirst)
	body, from, err := s.page(ctx, domain, key, func(ctx context.Context) ([]byte, error) {
		return s.historyBody(ctx, domain, page)
	})
	if err != nil {
		return err
	}
	return s.sendHistory(c, body, format, replyInfo{origin: from, maxAge: historyAge})
}

// historyBody returns the body of a page of a live history. The error is errNoHistory if
// the company has no score.
func (s *Server) historyBody(ctx context.Context, domain string, page api.Page) ([]byte, error) {
	records, err := s.Scores.History(ctx, domain, page.Span, page.Limit+1)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		// A page past the end of a history is empty. A company without a score is an error.
		entry, err := s.Cache.Fresh(ctx, domain)
		if err != nil {
			return nil, err
		}
		if !entry.Found() {
			return nil, &errNoHistory
		}
	}
	return json.Marshal(api.NewHistory(domain, page, records))
}

// sendHistory answers with a page, given as JSON, in a format. In the formats without a place for the cursor,
// a Link header has the address of the next page.
func (s *Server) sendHistory(c *fiber.Ctx, body []byte, format api.HistoryFormat, info replyInfo) error {
	if format.ContentType == "" {
		return s.sendRendered(c, tagged(body), info)
	}
	var page api.History
	if err := json.Unmarshal(body, &page); err != nil {
		return err
	}
	text, err := format.Write(page)
	if err != nil {
		return err
	}
	if page.NextCursor != "" {
		next := fasthttp.AcquireArgs()
		defer fasthttp.ReleaseArgs(next)
		c.Request().URI().QueryArgs().CopyTo(next)
		next.Set("cursor", page.NextCursor)
		c.Append(fiber.HeaderLink, "<"+c.Path()+"?"+next.String()+`>; rel="next"`)
	}
	info.kind = format.ContentType
	return s.sendRendered(c, tagged(text), info)
}

// historyFormat reads format of the query.
func historyFormat(c *fiber.Ctx) (api.HistoryFormat, error) {
	args := c.Request().URI().QueryArgs()
	if !args.Has("format") {
		return api.HistoryFormat{}, nil
	}
	format, ok := api.HistoryFormats[string(args.Peek("format"))]
	if !ok {
		return format, &errFormat
	}
	return format, nil
}

// cursorLead is how far a cursor may lie ahead of the clock of this server: records have the time of other machines.
const cursorLead = time.Minute

// historyPage reads limit, cursor, from, to and order of the query.
func historyPage(c *fiber.Ctx, domain string, now time.Time) (page api.Page, err error) {
	page.Limit = api.HistoryDefault
	args := c.Request().URI().QueryArgs()
	if args.Has("limit") {
		limit, err := strconv.Atoi(string(args.Peek("limit")))
		if err != nil || limit < 1 || limit > api.HistoryMax {
			return page, &errLimit
		}
		page.Limit = limit
	}
	if args.Has("order") {
		switch string(args.Peek("order")) {
		case "newest":
		case "oldest":
			page.OldestFirst = true
		default:
			return page, &errOrder
		}
	}
	if args.Has("from") {
		if page.From, err = parseInstant(string(args.Peek("from"))); err != nil {
			return page, &errFrom
		}
	}
	if args.Has("to") {
		if page.To, err = parseInstant(string(args.Peek("to"))); err != nil {
			return page, &errTo
		}
		if page.To.Before(page.From) {
			return page, &errFromAfterTo
		}
	}
	if args.Has("cursor") {
		last, err := api.DecodeCursor(domain, page.OldestFirst, string(args.Peek("cursor")))
		if err != nil || last.After(now.Add(cursorLead)) {
			return page, &errInvalidCursor
		}
		page.After(last)
	}
	return page, nil
}
