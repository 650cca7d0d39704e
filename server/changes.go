package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/server/sandbox"
)

const (
	// changesSpan is the default time between the two records.
	changesSpan = 30 * 24 * time.Hour
	// changesAge is the max-age of an answer. Instants that follow from the clock are rounded to it, so
	// that equal requests have equal answers.
	changesAge = 30 * time.Second
)

// getChanges returns the difference between the records of a company at two instants, split by cause.
func (s *Server) getChanges(c *fiber.Ctx) error {
	who := callerOf(c)
	domain, err := pathDomain(who.Mode, c.Params("*"))
	if err != nil {
		return err
	}
	from, to, given, err := changesRange(c, s.now())
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		body := api.NewChanges(sandbox.At(domain, from, s.now()), sandbox.At(domain, to, s.now()))
		body.Mode = api.Sandbox
		return s.send(c, body, replyInfo{origin: originSandbox, maxAge: changesAge})
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	key := fmt.Sprintf("changes %d %d", from.UnixMilli(), to.UnixMilli())
	return s.sendPage(c, ctx, domain, key, changesAge, func(ctx context.Context) ([]byte, error) {
		return s.changesBody(ctx, domain, from, to, given)
	})
}

// changesBody returns the body of live changes. If there is no record at or before from, it compares
// with the oldest record; if from was given the error is errNoRecord.
func (s *Server) changesBody(ctx context.Context, domain string, from, to time.Time, given bool) ([]byte, error) {
	before, err := s.Scores.At(ctx, domain, from)
	if errors.Is(err, scoring.ErrNotFound) && !given {
		before, err = s.Scores.First(ctx, domain)
	}
	if errors.Is(err, scoring.ErrNotFound) {
		return nil, &errNoRecord
	}
	if err != nil {
		return nil, err
	}
	after, err := s.Scores.At(ctx, domain, to)
	if errors.Is(err, scoring.ErrNotFound) {
		return nil, &errNoRecord // all records are younger than to
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(api.NewChanges(before, after))
}

// changesRange reads from and to of the query. given reports whether the query has from.
func changesRange(c *fiber.Ctx, now time.Time) (from, to time.Time, given bool, err error) {
	args := c.Request().URI().QueryArgs()
	to = now.Truncate(changesAge).Add(changesAge)
	if args.Has("to") {
		if to, err = parseInstant(string(args.Peek("to"))); err != nil {
			return from, to, given, &errTo
		}
	}
	from = to.Add(-changesSpan)
	if given = args.Has("from"); given {
		if from, err = parseInstant(string(args.Peek("from"))); err != nil {
			return from, to, given, &errFrom
		}
	}
	if to.Before(from) {
		return from, to, given, &errFromAfterTo
	}
	return from, to, given, nil
}

// parseInstant parses an instant of RFC 3339, or a date, which is its first instant in UTC. The
// plus of an offset may be a space, which is what a query makes of a plus that is not escaped.
func parseInstant(text string) (time.Time, error) {
	if offset := len(text) - len(" 02:00"); offset > 0 && text[offset] == ' ' {
		text = text[:offset] + "+" + text[offset+1:]
	}
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err == nil && (at.Year() < 1970 || at.Year() > 2200) {
		err = errors.New("out of range")
	}
	return at.UTC(), err
}
