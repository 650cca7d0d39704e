// Package console serves the developer console: pages for people who have an account. They sign in
// with a one-time link, create and revoke keys, read usage and requests, and see scores with
// everything behind them. Operators also see all accounts and runs.
//
// The pages are HTML that the server renders. Every form works without JavaScript. The package
// implements http.Handler and states in interfaces what it needs; it writes keys and tiers through
// the stores of the API, so that there is one rule for both.
package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/scoring"
	"companyscore/server/meter"
	"companyscore/universe"
)

// Path is the address of the console. All its pages are below it.
const Path = "/console"

// requestMax bounds the time that a page waits for the stores, and formMax the size of a form.
const (
	requestMax = 10 * time.Second
	formMax    = 16 << 10
)

// Config configures the console.
type Config struct {
	// Switch is "on" or "off".
	Switch string
	// Proxies are comma-separated address ranges whose X-Forwarded-For and X-Forwarded-Proto
	// are believed.
	Proxies string
}

// Flags adds the flags of c with their defaults.
func (c *Config) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Switch, "console", "on", "developer console at /console: on or off")
	flags.StringVar(&c.Proxies, "console-proxies", "",
		"address ranges of TLS proxies, such as 10.0.0.0/8,::1/128, whose X-Forwarded-For and X-Forwarded-Proto the console believes")
}

// On reports whether the console is switched on.
func (c Config) On() bool { return c.Switch != "off" }

// Validate returns an error that names every flag that is wrong.
func (c Config) Validate() error {
	_, err := c.proxies()
	if c.Switch != "on" && c.Switch != "off" {
		err = errors.Join(err, fmt.Errorf("--console %q: use on or off", c.Switch))
	}
	return err
}

func (c Config) proxies() (ranges []netip.Prefix, err error) {
	for text := range strings.SplitSeq(c.Proxies, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		prefix, parseErr := netip.ParsePrefix(text)
		if parseErr != nil {
			err = errors.Join(err, fmt.Errorf("--console-proxies %q: use ranges such as 10.0.0.0/8", text))
		}
		ranges = append(ranges, prefix)
	}
	return ranges, err
}

// Stores has the part of ClickHouse that each page uses. Reads of what does not exist return
// account.ErrNotFound or scoring.ErrNotFound.
type Stores struct {
	Sessions  SessionStore // of all pages
	Home      HomeStore
	Keys      KeyStore
	Usage     UsageStore
	Requests  RequestStore
	Companies CompanyStore
	Data      DataStore
	Operators OperatorStore
}

// Universe returns the statistics of all companies, nil before the first count.
type Universe interface {
	Tables(now time.Time) *universe.Tables
}

// Meter reads the calls and limits of accounts. See meter.Meter.
type Meter interface {
	Usage(ctx context.Context, acct account.Account, now time.Time) (meter.Usage, error)
	Breakers(ctx context.Context, acct account.Account, keyIDs []string, now time.Time) (meter.BreakerUse, error)
}

// Queue starts runs and counts those that are open. See queue.Queue.
type Queue interface {
	Start(ctx context.Context, lane scoring.Lane, domains ...string) ([]string, error)
	Status(ctx context.Context) (queue.Status, error)
}

// Scorer starts cold calls.
type Scorer interface {
	// Score starts a cold call of an account and charges it, once for each idempotency key. It
	// returns the time of the call, zero if a fresh score is stored. The error is a *NotStarted if
	// the API refuses the call.
	Score(ctx context.Context, acct account.Account, domain, key string, now time.Time) (started time.Time, err error)
}

// Refusal explains an error code of the API to a reader.
type Refusal struct {
	Meaning, Do string
	Path        string // address of the page about the code
}

// Dependencies are the parts that a Console needs. All are required.
type Dependencies struct {
	Stores   Stores
	Universe Universe
	Meter    Meter
	Queue    Queue
	Scorer   Scorer
	Redis    goredis.UniversalClient
	// Refusals explains the error codes of the API.
	Refusals map[string]Refusal
	Logger   *slog.Logger
}

// NotStarted is the reason why a company is not scored, as the API answers it.
type NotStarted struct {
	Status     int
	Message    string
	RetryAfter int // in seconds, 0 for no header
}

// Error returns the message.
func (e *NotStarted) Error() string { return e.Message }

// Console is the developer console. It is safe for concurrent use.
type Console struct {
	Dependencies
	proxies []netip.Prefix
	slots   *slots
	mux     *http.ServeMux
	now     func() time.Time
}

// New returns the console. It has no background work.
func New(cfg Config, deps Dependencies) (*Console, error) {
	ranges, err := cfg.proxies()
	if err != nil {
		return nil, err
	}
	c := &Console{Dependencies: deps, proxies: ranges, slots: newSlots(), mux: http.NewServeMux(), now: time.Now}
	c.mux.HandleFunc("GET "+staticPath+"{name}", serveStatic)
	c.public("GET /sign-in", c.signInPage)
	c.public("GET /link/{token}", c.linkPage)
	c.public("POST /link/{token}", c.redeemLink)
	c.private("GET ", c.home)
	c.private("POST /sign-out", c.signOut)
	c.private("GET /keys", c.keys)
	c.private("POST /keys", c.createKey)
	c.private("GET /keys/{id}/revoke", c.confirmRevoke)
	c.private("POST /keys/{id}/revoke", c.revokeKey)
	c.private("GET /usage", c.usage)
	c.private("GET /requests", c.requests)
	c.private("GET /requests/{id}", c.request)
	c.private("GET /companies", c.search)
	c.private("GET /companies/{domain}", c.company)
	c.private("POST /companies/{domain}", c.scoreCompany)
	c.private("GET /universe", c.universe)
	c.private("GET /data", c.data)
	c.operators("POST /examples", c.importExamples)
	c.operators("GET /examples", c.examplesProgress)
	c.operators("GET /operators", c.accounts)
	c.operators("POST /operators/accounts/{id}", c.setPlan)
	c.operators("GET /operators/keys", c.allKeys)
	c.operators("GET /operators/runs", c.runs)
	c.operators("GET /operators/audit", c.audit)
	c.mux.Handle("GET "+Path+"/{$}", http.RedirectHandler(Path, http.StatusMovedPermanently))
	c.mux.HandleFunc(Path+"/", func(w http.ResponseWriter, r *http.Request) {
		c.fail(&visit{console: c, w: w, r: r}, errNotFound)
	})
	return c, nil
}

// Errors of pages, with what the visitor sees.
var (
	errNotFound = &pageError{http.StatusNotFound, "Page not found", "This address does not exist in the console."}
	errForged   = &pageError{http.StatusForbidden, "Form refused",
		"The form did not come from this console, or it is too old. Open the page again and repeat the change."}
	errOperator = &pageError{http.StatusForbidden, "For operators", "This page needs a session of a link that was made with --operator."}
	errForm     = &pageError{http.StatusBadRequest, "Form not valid", "The form has a value that is not allowed."}
)

// pageError is an error that a visitor sees.
type pageError struct {
	Status         int
	Title, Message string
}

func (e *pageError) Error() string { return e.Title + ": " + e.Message }

// with returns a copy of the error with another message.
func (e pageError) with(format string, args ...any) *pageError {
	e.Message = fmt.Sprintf(format, args...)
	return &e
}

// handler answers a visit.
type handler func(v *visit) error

// public adds a route that needs no session.
func (c *Console) public(route string, h handler) { c.route(route, h) }

// private adds a route that needs a session. Its forms need the token of the session.
func (c *Console) private(route string, h handler) {
	c.route(route, func(v *visit) error {
		signedIn, err := v.load()
		defer v.free()
		switch {
		case err != nil:
			return err
		case !signedIn:
			return v.redirect("/sign-in")
		case v.r.Method == http.MethodPost && !v.formIsOwn():
			return errForged
		}
		return h(v)
	})
}

// operators adds a route that needs the session of an operator.
func (c *Console) operators(route string, h handler) {
	c.private(route, func(v *visit) error {
		if !v.session.Operator {
			return errOperator
		}
		return h(v)
	})
}

func (c *Console) route(route string, h handler) {
	method, path, _ := strings.Cut(route, " ")
	forms := http.NewCrossOriginProtection()
	c.mux.HandleFunc(method+" "+Path+path, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestMax)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, formMax)
		v := &visit{console: c, w: w, r: r.WithContext(ctx), free: func() {}}
		err := forms.Check(r)
		if err != nil {
			err = errForged
		} else {
			err = h(v)
		}
		if err != nil {
			c.fail(v, err)
		}
	})
}

// contentPolicy allows the console's own files and forms only.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	c.mux.ServeHTTP(w, r)
}

// fail answers with the page of an error. It logs errors that visitors do not see.
func (c *Console) fail(v *visit, err error) {
	var seen *pageError
	switch {
	case errors.As(err, &seen):
	case errors.Is(err, account.ErrNotFound), errors.Is(err, scoring.ErrNotFound):
		seen = errNotFound
	default:
		c.Logger.Error("console page failed", "method", v.r.Method, "route", v.r.Pattern, "err", err)
		seen = &pageError{http.StatusServiceUnavailable, "Not available",
			"A store of the service did not answer. Nothing is lost: try again in a moment."}
	}
	v.status = seen.Status
	if err := v.render("error", seen.Title, "", seen); err != nil {
		c.Logger.Error("console page failed", "err", err)
	}
}
