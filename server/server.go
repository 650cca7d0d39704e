// Package server is the HTTP interface: routes, handlers, one table of errors.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"companyscore/internal/config"
	"companyscore/scoring"
	"companyscore/server/account"
	"companyscore/server/api"
	"companyscore/server/cache"
	"companyscore/server/job"
	"companyscore/server/meter"
	"companyscore/universe"
)

// Keys tells who calls. See account.Directory.
type Keys interface {
	Verify(ctx context.Context, raw string) (account.Caller, error)
	// Peek returns the caller behind a key if that is known without asking anyone.
	Peek(raw []byte, now time.Time) *account.Caller
}

// Scores reads stored records. Latest returns the newest of a domain with its
// signals, or scoring.ErrNotFound. History returns records older than an
// instant (all when it is zero), newest first, at most limit.
type Scores interface {
	Latest(ctx context.Context, domain string) (scoring.Record, error)
	History(ctx context.Context, domain string, before time.Time, limit int) ([]scoring.Record, error)
	// Newest is Latest without signals, and with the instant at which the record was written.
	Newest(ctx context.Context, domain string) (newest scoring.Record, written time.Time, err error)
	// Counted returns how a count of all companies counted a company, nil if it did not.
	Counted(ctx context.Context, domain string, generation, note uint64) (*universe.Counted, error)
}

// Universe knows what is known of all companies together.
type Universe interface {
	// Tables returns the newest statistics, nil before the first were made.
	Tables() *universe.Tables
}

// Meter admits and counts calls. See meter.Meter.
type Meter interface {
	Limits(tier account.Tier) meter.Tier
	Admit(ctx context.Context, req meter.AdmitRequest) (meter.Admission, error)
	Replay(ctx context.Context, req meter.AdmitRequest) (a meter.Admission, found bool, err error)
	Remaining(ctx context.Context, acct account.Account, now time.Time) (*int64, error)
	Usage(ctx context.Context, acct account.Account, now time.Time) (meter.Usage, error)
	CountCached(acct account.Account, now time.Time)
}

// Jobs reads and settles jobs. See job.Jobs.
type Jobs interface {
	Get(ctx context.Context, id string) (job.Job, error)
	Settle(ctx context.Context, j job.Job) (job.Job, error)
}

// Queue wakes a worker for a run.
type Queue interface {
	Enqueue(ctx context.Context, runID string) error
}

// Config holds what a server needs. All fields but HTTP are required.
type Config struct {
	HTTP     config.HTTP // the zero value means the defaults
	Keys     Keys
	Scores   Scores
	Cache    *cache.Cache
	Universe Universe
	Meter    Meter
	Jobs     Jobs
	Queue    Queue
	Metrics  prometheus.Registerer
	Logger   *slog.Logger
}

// Validate returns an error that names every field that is not set.
func (c Config) Validate() error {
	var faults []error
	for name, missing := range map[string]bool{
		"Keys": c.Keys == nil, "Scores": c.Scores == nil, "Cache": c.Cache == nil, "Universe": c.Universe == nil, "Meter": c.Meter == nil,
		"Jobs": c.Jobs == nil, "Queue": c.Queue == nil, "Metrics": c.Metrics == nil, "Logger": c.Logger == nil,
	} {
		if missing {
			faults = append(faults, fmt.Errorf("server config: %s is not set", name))
		}
	}
	return errors.Join(faults...)
}

const (
	bodyMaxBytes = batchBodyMax     // the largest of all routes
	requestMax   = 10 * time.Second // what a handler may take of the stores' time
)

// Server answers HTTP requests.
type Server struct {
	Config
	logger       *slog.Logger
	app          *fiber.App
	now          func() time.Time
	metrics      *metrics
	hotMetrics   hotMetrics
	tails        map[account.Tier][]byte // of score bodies
	signals      rendered
	movers       moversCache
	distribution distributionCache
}

// New returns a server that is not listening yet.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.HTTP == (config.HTTP{}) {
		cfg.HTTP = config.DefaultHTTP()
	}
	m := newMetrics(cfg.Metrics)
	signals, err := render(api.NewSignals())
	if err != nil {
		return nil, err
	}
	s := &Server{Config: cfg, logger: cfg.Logger, now: time.Now, metrics: m, hotMetrics: newHotMetrics(m), signals: signals, tails: make(map[account.Tier][]byte)}
	for _, tier := range account.Tiers {
		s.tails[tier] = api.ScoreTail(s.callerBody(tier))
	}
	s.app = fiber.New(fiber.Config{
		AppName:               "companyscore",
		DisableStartupMessage: true,
		CaseSensitive:         true,
		BodyLimit:             bodyMaxBytes,
		ReadBufferSize:        cfg.HTTP.HeaderMax,
		ReadTimeout:           cfg.HTTP.ReadTimeout,
		WriteTimeout:          cfg.HTTP.WriteTimeout,
		IdleTimeout:           cfg.HTTP.IdleTimeout,
		Concurrency:           cfg.HTTP.Connections,
		ErrorHandler:          s.fail,
	})
	s.app.Use(s.identify, s.observe, recover.New(recover.Config{
		EnableStackTrace: true,
		StackTraceHandler: func(c *fiber.Ctx, p any) {
			s.logger.Error("handler panicked", "request", requestID(c), "panic", p, "stack", string(debug.Stack()))
		},
	}), compress)
	v1 := s.app.Group("/v1")
	v1.Post("/score", s.authenticate, s.postScore)
	v1.Post("/scores/batch", s.authenticate, s.postBatch)
	v1.Get("/score/*/history", s.authenticate, s.getHistory)
	v1.Get("/score/*", s.authenticate, s.getScore)
	v1.Get("/jobs/:job_id", s.authenticate, s.getJob)
	v1.Get("/company/*/cohort", s.authenticate, s.getCohort)
	v1.Get("/company/*/confidence", s.authenticate, s.getConfidence)
	v1.Get("/movers", s.authenticate, s.getMovers)
	v1.Get("/usage", s.authenticate, s.getUsage)
	v1.Get("/distribution", s.authenticate, s.getDistribution)
	v1.Get("/signals", s.authenticate, s.getSignals)
	s.addDocs()
	unread := s.app.Server().ErrorHandler
	s.app.Server().ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		// Clients open connections to have them at hand. An answer to what they never
		// asked would be taken for that to their first request.
		if c, ok := ctx.Conn().(*conn); ok && !c.began {
			c.Close() // so that what fasthttp writes now goes nowhere
			return
		}
		unread(ctx, err)
	}
	known := s.app.Server().Handler
	s.app.Server().Handler = func(c *fasthttp.RequestCtx) {
		switch {
		case s.hot(c, c.Time()):
		case slices.Contains(fiber.DefaultMethods, string(c.Method())):
			known(c)
		default:
			s.refuseMethod(c) // Fiber would answer with a text of its own
		}
	}
	return s, nil
}

// Serve answers requests on ln until Shutdown is called.
func (s *Server) Serve(ln net.Listener) error {
	return s.app.Listener(newListener(ln, s.HTTP))
}

// Shutdown stops listening and waits for the requests under way until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.app.ShutdownWithContext(ctx) }

// refuseMethod answers a method that HTTP does not know.
func (s *Server) refuseMethod(ctx *fasthttp.RequestCtx) {
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	if err := s.fail(c, &errMethod); err != nil {
		s.logger.Error("answer not written", "err", err)
	}
}

// App is the Fiber application, for tests that call it without a network.
func (s *Server) App() *fiber.App { return s.app }

const (
	callerLocal  = "caller"
	requestLocal = "request"
)

// identify gives every request an id: the caller's own if it is sane, else a new one.
func (s *Server) identify(c *fiber.Ctx) error {
	id := c.Get(fiber.HeaderXRequestID)
	if !saneRequestID(id) {
		id = string(appendRequestID(nil, s.now()))
	}
	id = strings.Clone(id)
	c.Locals(requestLocal, id)
	c.Set(fiber.HeaderXRequestID, id)
	return c.Next()
}

func requestID(c *fiber.Ctx) string {
	id, _ := c.Locals(requestLocal).(string)
	return id
}

// authenticate finds out who calls.
func (s *Server) authenticate(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	caller, err := s.Keys.Verify(ctx, strings.Clone(c.Get("X-API-Key")))
	switch {
	case errors.Is(err, account.ErrMalformed), errors.Is(err, account.ErrNotFound), errors.Is(err, account.ErrRevoked):
		return &errUnauthorized
	case err != nil:
		return err
	}
	c.Locals(callerLocal, caller)
	return c.Next()
}

func callerOf(c *fiber.Ctx) account.Caller { return c.Locals(callerLocal).(account.Caller) }
