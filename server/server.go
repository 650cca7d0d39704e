// Package server implements the HTTP API: routes, handlers and the table of errors.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"

	"companyscore/internal/account"
	"companyscore/internal/config"
	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/server/cache"
	"companyscore/server/job"
	"companyscore/server/keys"
	"companyscore/server/meter"
	"companyscore/server/requestlog"
	"companyscore/universe"
)

// Keys returns the caller of an API key. See keys.Directory.
type Keys interface {
	Verify(ctx context.Context, raw string) (keys.Caller, error)
	// Peek returns the caller of a key if it is in memory, else nil. It makes no lookup.
	Peek(raw []byte, now time.Time) *keys.Caller
}

// Scores reads stored records. Latest returns the newest record of a domain with its
// signals, or scoring.ErrNotFound. History returns at most limit records older than
// before, newest first; a zero before means no bound.
type Scores interface {
	Latest(ctx context.Context, domain string) (scoring.Record, error)
	History(ctx context.Context, domain string, span scoring.Span, limit int) ([]scoring.Record, error)
	// At returns the newest record at or before an instant with its signals, or scoring.ErrNotFound.
	At(ctx context.Context, domain string, at time.Time) (scoring.Record, error)
	// First returns the oldest record with its signals, or scoring.ErrNotFound.
	First(ctx context.Context, domain string) (scoring.Record, error)
	// Newest returns the summary of the newest record.
	Newest(ctx context.Context, domain string) (universe.Stored, error)
	universe.Writes
}

// Universe returns the statistics of all companies.
type Universe interface {
	// Tables returns the tables that all servers use at an instant, which is about now. It
	// returns nil before there are any.
	Tables(now time.Time) *universe.Tables
}

// Meter counts calls. See meter.Meter.
type Meter interface {
	Limits(plan account.Plan) meter.PlanLimits
	// Quota returns the calls of an account in a month from memory, LoadQuota from Redis the first time.
	Quota(acct account.Account, now time.Time) (q meter.Quota, known bool)
	LoadQuota(ctx context.Context, acct account.Account, now time.Time) (meter.Quota, error)
	Usage(ctx context.Context, acct account.Account, now time.Time) (meter.Usage, error)
	CountCached(acct account.Account, now time.Time)
}

// Jobs reads and settles jobs. See job.Jobs.
type Jobs interface {
	Get(ctx context.Context, ids ...string) (map[string]job.Job, error)
	Settle(ctx context.Context, jobs map[string]job.Job) (map[string]job.Job, error)
}

// RequestCounts reads counts of requests. RequestGroups returns those of an account from a minute
// until before another, by "day", "key", "route" or "status", without empty groups.
type RequestCounts interface {
	RequestGroups(ctx context.Context, accountID string, from, to time.Time, by string) ([]table.RequestGroup, error)
}

// Dependencies are the parts that a Server needs. All fields but HTTP, Requests and Console are required.
type Dependencies struct {
	HTTP     config.HTTP // the zero value means the defaults
	Keys     Keys
	Scores   Scores
	Cache    *cache.Cache
	Universe Universe
	Meter    Meter
	Calls    *ColdCalls
	Jobs     Jobs
	// Requests records all answers; nil records none.
	Requests *requestlog.Log
	// RequestCounts has the requests of accounts.
	RequestCounts RequestCounts
	// Console serves the developer console; nil serves none.
	Console http.Handler
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// Validate returns an error that names every field that is not set.
func (c Dependencies) Validate() error {
	var faults []error
	for name, missing := range map[string]bool{
		"Keys": c.Keys == nil, "Scores": c.Scores == nil, "Cache": c.Cache == nil, "Universe": c.Universe == nil, "Meter": c.Meter == nil,
		"Calls": c.Calls == nil, "Jobs": c.Jobs == nil, "RequestCounts": c.RequestCounts == nil, "Metrics": c.Metrics == nil,
		"Logger": c.Logger == nil,
	} {
		if missing {
			faults = append(faults, fmt.Errorf("server config: %s is not set", name))
		}
	}
	return errors.Join(faults...)
}

// requestMax bounds the time that a handler waits for the stores.
const requestMax = 10 * time.Second

// Server answers HTTP requests.
type Server struct {
	Dependencies
	logger      *slog.Logger
	log         *limitedHandler // the handler of logger
	app         *fiber.App
	routes      fasthttp.RequestHandler // the handler of app
	connections *connections
	stopping    atomic.Bool
	answers     *inFlightBudget
	bodies      *semaphore.Weighted // bytes of large request bodies in flight
	histories   *inFlightBudget     // histories of requests that are read at once, by account
	now         func() time.Time
	quotaWait   time.Duration // bounds the first read of the counts of an account
	metrics     *metrics
	hotMetrics  hotMetrics
	tails       map[account.Plan][]byte // last part of score bodies, see api.ScoreTail
	signals     rendered
	universe    universeBodies
	quotaMonth  atomic.Pointer[quotaMonth]
}

// New returns a server. It does not listen before Serve.
func New(cfg Dependencies) (*Server, error) {
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
	s := &Server{
		Dependencies: cfg, log: limitLines(cfg.Logger.Handler()), now: time.Now, quotaWait: quotaWait, metrics: m,
		hotMetrics: newHotMetrics(m), signals: signals, tails: make(map[account.Plan][]byte),
		connections: newConnections(cfg.HTTP), answers: newInFlightBudget(answersMax, answersKeyMax),
		bodies: semaphore.NewWeighted(bodiesMax), histories: newInFlightBudget(historiesMax, historiesAccountMax),
	}
	s.logger = slog.New(s.log)
	cfg.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "companyscore_http_answer_bytes",
		Help: "Bytes of large answers in flight: reserved, built, or not yet read by their clients.",
	}, func() float64 { return float64(s.answers.used.Load()) }))
	for _, plan := range account.Plans {
		s.tails[plan] = api.ScoreTail(s.callerBody(plan))
	}
	s.app = fiber.New(fiber.Config{
		AppName:               "companyscore",
		DisableStartupMessage: true,
		CaseSensitive:         true,
		ErrorHandler:          s.fail,
	})
	s.app.Use(s.identify, s.observe, recover.New(recover.Config{
		EnableStackTrace: true,
		StackTraceHandler: func(c *fiber.Ctx, p any) {
			s.logger.Error("handler panicked", "request", requestID(c), "panic", p, "stack", string(debug.Stack()))
		},
	}))
	v1 := s.app.Group("/v1", compress)
	v1.Post("/score", s.authenticate, s.postScore)
	v1.All("/score", postOnly) // the routes of scores would match it, with an empty domain
	v1.Post("/scores", s.authenticate, s.postScores)
	v1.Post("/scores/batch", s.authenticate, s.postBatch)
	v1.Get("/score/*/history", s.authenticate, s.getHistory)
	v1.Get("/score/*/changes", s.authenticate, s.getChanges)
	v1.Get("/score/*/signals", s.authenticate, s.getScoreSignals)
	v1.Get("/score/*", s.authenticate, s.getScore)
	v1.Get("/jobs", s.authenticate, s.getJobs)
	v1.Get("/jobs/:job_id", s.authenticate, s.getJob)
	v1.Get("/company/*/cohort", s.authenticate, s.getCohort)
	v1.Get("/company/*/confidence", s.authenticate, s.getConfidence)
	v1.Get("/movers", s.authenticate, s.getMovers)
	v1.Get("/usage", s.authenticate, s.getUsage)
	v1.Get("/usage/history", s.authenticate, s.getUsageHistory)
	v1.Get("/distribution", s.authenticate, s.getDistribution)
	v1.Get("/signals", s.authenticate, s.getSignals)
	if err := s.addDocs(); err != nil {
		return nil, err
	}
	s.addConsole()
	s.routes = s.app.Handler()
	return s, nil
}

// handle answers a request that arrived at the instant began.
func (s *Server) handle(ctx *fasthttp.RequestCtx, began time.Time) {
	switch {
	case s.hot(ctx, began):
	case slices.Contains(fiber.DefaultMethods, string(ctx.Method())):
		s.routes(ctx)
	default:
		s.refuse(ctx, &errMethod, began) // Fiber would answer with its own text
	}
}

// refuse answers a request with a problem and calls no route.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, p *problem, began time.Time) {
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	if err := s.fail(c, p); err != nil {
		s.logger.Error("answer not written", "err", err)
	}
	s.record(c, noRoute, began)
}

const (
	callerLocal    = "caller"
	requestLocal   = "request"
	problemLocal   = "problem"
	admissionLocal = "admission"
)

// identify sets the request id: the caller's id if it is valid, else a new one.
func (s *Server) identify(c *fiber.Ctx) error {
	s.setRequestID(c)
	return c.Next()
}

func (s *Server) setRequestID(c *fiber.Ctx) {
	id := c.Get(fiber.HeaderXRequestID)
	if !saneRequestID(id) {
		id = string(appendRequestID(nil, s.now()))
	}
	id = strings.Clone(id)
	c.Locals(requestLocal, id)
	c.Set(fiber.HeaderXRequestID, id)
}

func requestID(c *fiber.Ctx) string {
	id, _ := c.Locals(requestLocal).(string)
	return id
}

// authenticate verifies the API key and stores the caller in the request. It adds the quota of the
// caller to the answer.
func (s *Server) authenticate(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	caller, err := s.Keys.Verify(ctx, strings.Clone(c.Get("X-API-Key")))
	switch {
	case errors.Is(err, account.ErrMalformed), errors.Is(err, account.ErrNotFound), errors.Is(err, account.ErrRevoked):
		if c.Get("X-API-Key") == "" && c.Get(fiber.HeaderAuthorization) != "" {
			return &errBearer
		}
		return &errUnauthorized
	case err != nil:
		return err
	}
	c.Locals(callerLocal, caller)
	err = c.Next()
	s.setQuota(c, caller)
	return err
}

func callerOf(c *fiber.Ctx) keys.Caller { return c.Locals(callerLocal).(keys.Caller) }
