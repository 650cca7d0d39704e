package server

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/server/console"
	"companyscore/server/meter"
)

// addConsole adds the routes of the developer console, if there is one.
func (s *Server) addConsole() {
	if s.Console == nil {
		return
	}
	pages := fasthttpadaptor.NewFastHTTPHandler(s.Console)
	handle := func(c *fiber.Ctx) error {
		pages(c.Context())
		return nil
	}
	s.app.All(console.Path, handle)
	s.app.All(console.Path+"/*", handle)
}

// newConsole returns the console of a role whose other parts are open. It uses the server of the role
// when a person asks for a score.
func (r *role) newConsole(cfg Config, q *queue.Queue) (*console.Console, error) {
	return console.New(cfg.Console, console.Dependencies{
		Store: cfg.Stores.Console, Universe: r.universe, Meter: r.meter, Queue: q, Redis: cfg.Stores.Redis, Refusals: refusals(), Logger: cfg.Logger,
		Score: func(ctx context.Context, acct account.Account, domain, key string) (time.Time, error) {
			return r.server.scoreFor(ctx, acct, domain, key)
		},
	})
}

// scoreFor does what POST /v1/score with an Idempotency-Key does, for a person of an account. It
// returns the time of the cold call, zero if a fresh score is stored. Each account has an hourly
// breaker of its own for these calls, as if the console were one of its keys. A problem becomes a
// *console.NotStarted; its cause is logged if its status is 500 or more.
func (s *Server) scoreFor(ctx context.Context, acct account.Account, domain, key string) (time.Time, error) {
	domain, err := canonical(account.Live, domain, errBodyDomain)
	if err == nil && acct.Tier == account.Free {
		err = &errFreeTier
	}
	var admission meter.Admission
	if err == nil {
		_, _, admission, err = s.freshOrAdmit(ctx, meter.AdmitRequest{
			Account: acct, KeyID: console.KeyID(acct.ID), Domain: domain, Now: s.now(), IdempotencyKey: key, BodyHash: requestHash(domain, false),
		}, false)
	}
	var p *problem
	if errors.As(err, &p) {
		if p.Status >= 500 {
			s.logger.Error("cold call of the console failed", "account", acct.ID, "domain", domain, "err", err)
		}
		err = &console.NotStarted{Status: p.Status, Message: p.Message, RetryAfter: p.RetryAfter}
	}
	return admission.CreatedAt, err
}

// refusals returns the explanations of the error codes for the console.
func refusals() map[string]console.Refusal {
	all := make(map[string]console.Refusal, len(errorPages))
	for _, page := range errorPages {
		all[page.Code] = console.Refusal{Meaning: page.Meaning, Do: page.Do, Path: page.Path()}
	}
	return all
}
