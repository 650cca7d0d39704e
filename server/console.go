package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"companyscore/internal/account"
	"companyscore/server/console"
	"companyscore/server/meter"
)

// addConsole adds the routes of the developer console, if there is one.
func (s *Server) addConsole() {
	if s.Console == nil {
		return
	}
	pages := fasthttpadaptor.NewFastHTTPHandler(withCopies(s.Console))
	handle := func(c *fiber.Ctx) error {
		pages(c.Context())
		return nil
	}
	s.app.Get("/", toConsole)
	s.app.All(console.Path, handle)
	s.app.All(console.Path+"/*", handle)
}

// toConsole sends browsers from the address that `up` prints to the console.
func toConsole(c *fiber.Ctx) error {
	c.Vary(fiber.HeaderAccept)
	if !strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		return c.Next()
	}
	return c.Redirect(console.Path, fiber.StatusSeeOther)
}

// withCopies returns a handler that calls h with a copy of each request. The strings of a request of
// fasthttpadaptor change when fasthttp reads the next request of the connection, and so does its context.
// The copy has the same body, of which net/http copies the form, and the context of no request: like the
// handlers of the interface, the console limits the time of each request itself.
func withCopies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uri := strings.Clone(r.RequestURI)
		address, err := url.ParseRequestURI(uri)
		if err != nil {
			panic("server: address of a request: " + err.Error()) // fasthttpadaptor has parsed it
		}
		header := make(http.Header, len(r.Header))
		for name, values := range r.Header {
			for _, value := range values {
				header.Add(strings.Clone(name), strings.Clone(value))
			}
		}
		own := &http.Request{
			Method: strings.Clone(r.Method), URL: address, RequestURI: uri, Header: header, Host: strings.Clone(r.Host),
			Proto: strings.Clone(r.Proto), ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
			RemoteAddr: r.RemoteAddr, TLS: r.TLS, Body: r.Body, ContentLength: r.ContentLength,
		}
		h.ServeHTTP(w, own)
	})
}

// Score implements console.Scorer: it does what POST /v1/score with an Idempotency-Key does. Each account
// has an hourly breaker of its own for these calls, as if the console were one of its keys. A problem
// becomes a *console.NotStarted; its cause is logged if its status is 500 or more.
func (c *ColdCalls) Score(ctx context.Context, acct account.Account, domain, key string, now time.Time) (started time.Time, err error) {
	domain, err = canonical(account.Live, domain, errBodyDomain)
	if err == nil && acct.Plan == account.Free {
		err = &errFreeTier
	}
	var admission meter.Admission
	if err == nil {
		_, _, admission, err = c.freshOrAdmit(ctx, meter.AdmitRequest{
			Account: acct, KeyID: console.KeyID(acct.ID), Domain: domain, Now: now,
			IdempotencyKey: key, BodyHash: requestHash(domain, false),
		}, false)
	}
	var p *problem
	if errors.As(err, &p) {
		if p.Status >= 500 {
			c.logger.Error("cold call of the console failed", "account", acct.ID, "domain", domain, "err", err)
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
