package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/sandbox"
)

// historyAge is the max-age of a page of history.
const historyAge = 30 * time.Second

// historyRecordMax bounds the size of one record of a page, in bytes.
const historyRecordMax = 1 << 10

// getHistory returns one page of a company's records, newest first.
func (s *Server) getHistory(c *fiber.Ctx) error {
	who := callerOf(c)
	domain, err := pathDomain(who.Mode, c.Params("*"))
	if err != nil {
		return err
	}
	page, err := historyPage(c, domain)
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		records, _ := sandbox.History(domain, page, s.now())
		body := api.NewHistory(domain, page, records)
		body.Mode = api.Sandbox
		return s.send(c, body, replyInfo{origin: originSandbox, maxAge: historyAge})
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	if err := s.reserveAnswer(c, ctx, page.Limit*historyRecordMax); err != nil {
		return err
	}
	key := fmt.Sprintf("history %d %d", page.Limit, page.Before.UnixMilli())
	return s.sendPage(c, ctx, domain, key, historyAge, func(ctx context.Context) ([]byte, error) {
		return s.historyBody(ctx, domain, page)
	})
}

// historyBody returns the body of a page of a live history. The error is errNoHistory if
// the company has no score.
func (s *Server) historyBody(ctx context.Context, domain string, page api.Page) ([]byte, error) {
	records, err := s.Scores.History(ctx, domain, page.Before, page.Limit+1)
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

// historyPage reads limit and cursor of the query.
func historyPage(c *fiber.Ctx, domain string) (api.Page, error) {
	page := api.Page{Limit: api.HistoryDefault}
	args := c.Request().URI().QueryArgs()
	if args.Has("limit") {
		limit, err := strconv.Atoi(string(args.Peek("limit")))
		if err != nil || limit < 1 || limit > api.HistoryMax {
			return page, &errLimit
		}
		page.Limit = limit
	}
	if args.Has("cursor") {
		before, err := api.DecodeCursor(domain, string(args.Peek("cursor")))
		if err != nil {
			return page, &errInvalidCursor
		}
		page.Before = before
	}
	return page, nil
}
