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
	"companyscore/server/cache"
	"companyscore/server/sandbox"
)

// asOf is the query parameter with the instant of the score to answer with: the newest one that was stored then.
const asOf = "as_of"

// queryAsOf returns the instant of as_of, the zero time if it is not given. The error is errAsOf.
func queryAsOf(c *fiber.Ctx) (time.Time, error) {
	args := c.Request().URI().QueryArgs()
	if !args.Has(asOf) {
		return time.Time{}, nil
	}
	at, err := parseInstant(string(args.Peek(asOf)))
	if err != nil || at.IsZero() {
		return time.Time{}, &errAsOf
	}
	return at, nil
}

// recordAsOf returns the record of a company with its signals: the newest one, or that of an instant. The error is errNoScore
// if the company has no score, and errNoScoreThen if it had none yet.
func (s *Server) recordAsOf(ctx context.Context, domain string, at time.Time) (scoring.Record, error) {
	if at.IsZero() {
		rec, err := s.Scores.Latest(ctx, domain)
		if errors.Is(err, scoring.ErrNotFound) {
			err = &errNoScore
		}
		return rec, err
	}
	rec, err := s.Scores.At(ctx, domain, at)
	if errors.Is(err, scoring.ErrNotFound) {
		err = &errNoScoreThen
	}
	return rec, err
}

// cannedAsOf is recordAsOf for the sandbox. Its companies have a score at every instant.
func (s *Server) cannedAsOf(domain string, at time.Time) scoring.Record {
	if at.IsZero() {
		rec, _ := sandbox.Score(domain, s.now())
		return rec
	}
	return sandbox.At(domain, at, s.now())
}

// sendScoreAsOf answers with the score of an instant. It has no rank, since only the present statistics are known.
func (s *Server) sendScoreAsOf(c *fiber.Ctx, ctx context.Context, domain string, at time.Time, evidence bool) error {
	who := callerOf(c)
	body := func(mode string, rec scoring.Record) []byte {
		e := cache.NewEntry(rec)
		return api.AppendScore(nil, mode, e.Head, nil, evidenceOf(e, evidence), s.tails[who.Account.Plan])
	}
	if who.Mode == account.Test {
		return s.sendRendered(c, tagged(body(api.Sandbox, s.cannedAsOf(domain, at))), replyInfo{origin: originSandbox, maxAge: scoreAge})
	}
	key := fmt.Sprintf("score %d %t %s", at.UnixMilli(), evidence, who.Account.Plan)
	return s.sendPage(c, ctx, domain, key, scoreAge, func(ctx context.Context) ([]byte, error) {
		rec, err := s.recordAsOf(ctx, domain, at)
		if err != nil {
			return nil, err
		}
		return body("", rec), nil
	})
}

// getScoreSignals returns all signals of the newest score of a company, or of that of an instant. It counts no call.
func (s *Server) getScoreSignals(c *fiber.Ctx) error {
	who := callerOf(c)
	domain, err := pathDomain(who.Mode, c.Params("*"))
	if err != nil {
		return err
	}
	at, err := queryAsOf(c)
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		body := api.NewScoreSignals(sandbox.WithSignals(s.cannedAsOf(domain, at)))
		body.Mode = api.Sandbox
		return s.send(c, body, replyInfo{origin: originSandbox, maxAge: scoreAge})
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	key := "signals"
	if !at.IsZero() {
		key = fmt.Sprintf("signals %d", at.UnixMilli())
	}
	return s.sendPage(c, ctx, domain, key, scoreAge, func(ctx context.Context) ([]byte, error) {
		rec, err := s.recordAsOf(ctx, domain, at)
		if err != nil {
			return nil, err
		}
		return json.Marshal(api.NewScoreSignals(rec))
	})
}
