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

// historyAge is how long a page of history may be used without asking again.
const historyAge = 30 * time.Second

// historyRecordMax is a number of bytes that no record of a page exceeds.
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
		return s.send(c, body, answer{tier: tierSandbox, maxAge: historyAge})
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

// historyBody makes a page of a live history.
func (s *Server) historyBody(ctx context.Context, domain string, page api.Page) ([]byte, error) {
	records, err := s.Scores.History(ctx, domain, page.Before, page.Limit+1)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		// Past the end of a history is an empty page; without any history there is none.
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

// historyPage reads which page is asked for.
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
