package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/server/sandbox"
)

const (
	confidenceAge = 30 * time.Second
	signalsAge    = time.Hour
)

// getConfidence returns the confidence of the newest score of a company.
func (s *Server) getConfidence(c *fiber.Ctx) error {
	who := callerOf(c)
	domain, err := pathDomain(who.Mode, c.Params("*"))
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		rec, _ := sandbox.Score(domain, s.now())
		body := api.NewConfidence(rec)
		body.Mode = api.Sandbox
		return s.send(c, body, replyInfo{origin: originSandbox, maxAge: confidenceAge})
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	return s.sendPage(c, ctx, domain, "confidence", confidenceAge, func(ctx context.Context) ([]byte, error) {
		rec, err := s.Scores.Latest(ctx, domain)
		if errors.Is(err, scoring.ErrNotFound) {
			return nil, &errNoHistory
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(api.NewConfidence(rec))
	})
}

// getSignals returns the manifest of signals. It is the same for all callers.
func (s *Server) getSignals(c *fiber.Ctx) error {
	return s.sendRendered(c, s.signals, replyInfo{origin: originTable, maxAge: signalsAge})
}
