package server

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/server/cache"
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
		Score: func(ctx context.Context, acct account.Account, domain string) (bool, error) {
			return r.server.scoreFor(ctx, acct, domain)
		},
	})
}

// scoreFor does what POST /v1/score does, for a person of an account. Each account has an hourly
// breaker of its own for these calls, as if the console were one of its keys.
func (s *Server) scoreFor(ctx context.Context, acct account.Account, domain string) (started bool, err error) {
	domain, err = canonical(account.Live, domain, errBodyDomain)
	if err == nil && acct.Tier == account.Free {
		err = &errFreeTier
	}
	if err == nil {
		var entry cache.Entry
		entry, _, _, err = s.freshOrAdmit(ctx, meter.AdmitRequest{Account: acct, KeyID: console.KeyID(acct.ID), Domain: domain, Now: s.now()}, false)
		started = err == nil && !entry.Found()
	}
	var p *problem
	if errors.As(err, &p) {
		return false, &console.NotStarted{Message: p.Message}
	}
	return started, err
}

// refusals returns the explanations of the error codes for the console.
func refusals() map[string]console.Refusal {
	all := make(map[string]console.Refusal, len(errorPages))
	for _, page := range errorPages {
		all[page.Code()] = console.Refusal{Meaning: page.Meaning, Do: page.Do, Path: page.Path()}
	}
	return all
}
