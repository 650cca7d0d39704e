// Package embedded serves ClickHouse's HTTP protocol with the engine in libchdb. Clients are clickhouse-go, curl and other HTTP clients.
//
// serveStatement in exchange.go has the way of a statement, step by step. Its steps are in these files:
//
//   - request.go and body.go read the request, users.go finds its user, gate.go counts the requests of analysts and has their slots.
//   - lexer.go splits a text into tokens, statement.go outlines it, settings.go has the settings that an analyst may set.
//   - guard.go rejects statements of analysts, calls.go what they may not call, and rewrite.go replaces parts of them.
//     allowed.go has the list of what analysts may name.
//   - pool.go and engine.go have the connections, chdb.go calls the library, spool.go and answer.go have the files between
//     engine and client.
//   - output.go, exception.go and advice.go write the answer, hello.go that of a driver's first query, history.go records the statement.
//
// watch.go ends the process if its memory or a statement gets out of hand; running.go knows whose statement it was. access.go, detached.go
// and dropped.go prepare the engine. docs/adr/0002-embedded-clickhouse.md, docs/adr/0017-analysts.md and
// docs/adr/0021-bounds-of-the-engine.md have the reasons.
package embedded

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"companyscore/clickhouse/embedded/roster"
)

// Server answers ClickHouse's HTTP protocol. Its methods may be called concurrently.
type Server struct {
	cfg        Config
	engine     *engine
	users      *users
	gate       *gate // of analysts
	statements *statementLog
	spool      *spool
	now        *running      // statements of analysts
	parsing    chan struct{} // an element for each statement of an analyst that is parsed
	http       *http.Server
	stop       context.CancelCauseFunc // cancels the context of every request
	close      func(context.Context) error

	analysts     context.Context // of the analyst's statements; Shutdown cancels it first
	stopAnalysts context.CancelFunc
	watched      chan struct{} // closed when the watch has ended
}

// New opens the engine on cfg.Path. The caller calls Shutdown. New returns ErrInUse if the directory is open already.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Path, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	e, err := openEngine(cfg.Library, cfg.Path, cfg.Database, cfg.Memory/100*engineShare)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, engine: e, parsing: make(chan struct{}, runtime.NumCPU())}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	s.stop = stop
	s.analysts, s.stopAnalysts = context.WithCancel(base)
	s.http = &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headTimeout,
		MaxHeaderBytes:    headMax,
		IdleTimeout:       5 * time.Minute,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}
	s.watched = make(chan struct{})
	go func() { // ends with Shutdown
		defer close(s.watched)
		if cfg.End != nil {
			s.watch().run(s.analysts)
		}
	}()
	return s, nil
}

const (
	// engineShare is the share of the process's memory that the engine may allocate by its own count, in percent. Above it statements fail.
	engineShare = 80
	// headMax and headTimeout bound the line and headers of a request.
	headMax     = 64 << 10
	headTimeout = 20 * time.Second
	// bodyTimeout bounds the time in which the statement of an analyst must arrive.
	bodyTimeout = time.Minute
)

// prepare creates the spool and the users, and sets s.close.
func (s *Server) prepare() (err error) {
	files, err := temporary(s.cfg.Path)
	if err != nil {
		return err
	}
	if s.spool, err = newSpool(filepath.Join(s.cfg.Path, "spool"), s.cfg.MaxInsert, files); err != nil {
		return err
	}
	var leftover map[string]string
	if s.now, leftover, err = newRunning(filepath.Join(s.cfg.Path, "running")); err != nil {
		return err
	}
	if len(leftover) > 0 {
		blamed, err := roster.Blame(roster.RefusalsPath(s.cfg.Path), leftover, "its process has crashed or was killed", time.Now())
		s.cfg.Logger.Error("the engine had ended while statements of analysts ran", "statements", leftover, "refused", blamed, "err", err)
	}
	if err := s.logDetached(); err != nil {
		s.cfg.Logger.Warn("embedded ClickHouse", "err", err)
	}
	own := newPool(s.engine, s.cfg.Connections, s.cfg.QueueWait)
	reading := newPool(s.engine, s.cfg.AnalystSlots, s.cfg.QueueWait)
	s.gate = newGate(s.cfg.AnalystSlots, s.cfg.AnalystWait)
	guard, err := newAnalystGuard(s.engine.control, s.cfg.Database, s.cfg.allowed, max(1, uint64(files)/uint64(s.cfg.AnalystSlots)))
	if err != nil {
		return err
	}
	s.users = &users{roster: file{path: roster.Path(s.cfg.Path)}, refused: file{path: roster.RefusalsPath(s.cfg.Path)},
		pool: reading, guard: guard, logger: s.cfg.Logger}
	s.users.builtIn = []*user{{name: s.cfg.User, password: sha256.Sum256([]byte(s.cfg.Password)), pool: own}}
	if s.cfg.AnalystPassword != "" {
		first := s.users.analyst(analyst, sha256.Sum256([]byte(s.cfg.AnalystPassword)), roster.Default)
		s.users.builtIn = append(s.users.builtIn, first)
	}
	s.statements = newStatementLog(s, own)
	var once sync.Once
	var failed error
	s.close = func(ctx context.Context) error {
		once.Do(func() {
			if err := s.statements.loop.Close(ctx); err != nil {
				s.cfg.Logger.Warn("statements of analysts are lost", "err", err)
			}
			for _, p := range []*pool{own, reading} {
				failed = errors.Join(failed, p.close(ctx))
			}
			if failed == nil { // otherwise statements still run, and only the end of the process stops them
				failed = s.engine.close()
			}
		})
		return failed
	}
	return nil
}

// Serve serves requests on ln until Shutdown. It then returns http.ErrServerClosed.
func (s *Server) Serve(ln net.Listener) error { return s.http.Serve(ln) }

// Shutdown stops accepting requests and cancels the analyst's statements. It waits for those of the service until ctx ends, cancels the
// rest and closes the engine. It returns at most closeMax after ctx ends. It returns an error if a statement did not end or the engine
// was not closed in time; only the end of the process then stops them. Acknowledged data are durable in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopAnalysts()
	<-s.watched
	defer func() { _ = s.now.clear() }() // what does not end in time is not blamed for the end of the process
	drained := s.http.Shutdown(ctx)
	s.stop(errPoolClosed)
	last, cancel := endAfter(ctx, cancelMax)
	defer cancel()
	if drained != nil {
		drained = errors.Join(s.http.Shutdown(last), s.http.Close())
	}
	closing, stop := endAfter(ctx, closeMax)
	defer stop()
	closed := make(chan error, 1)
	go func() { closed <- s.close(last) }() // calls of the library have no deadline
	select {
	case err := <-closed:
		return errors.Join(drained, err)
	case <-closing.Done():
		return errors.Join(drained, fmt.Errorf("close engine: not closed %s after the time limit of statements", closeMax))
	}
}

const (
	// cancelMax is the time in which canceled statements must end, after the context of Shutdown has ended.
	cancelMax = time.Second
	// closeMax is the same for the engine. With statementsTimeout it is shorter than the time after which the parent process kills it.
	closeMax = 4 * time.Second
)

// endAfter returns a context that ends d after ctx.
func endAfter(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return later, func() { stop(); cancel() }
}

// Handler returns the HTTP handler: / runs statements. /ping, /replicas_status and / without parameters return "Ok.", and OPTIONS tells a
// page of another host that it may send statements, which need a password.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		_, _ = io.WriteString(w, "Ok.\n")
	}
	mux.HandleFunc("/ping", ok)
	mux.HandleFunc("/replicas_status", ok)
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodOptions:
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", "*")
			h.Set("Access-Control-Allow-Headers", "origin, x-requested-with, x-clickhouse-format, x-clickhouse-user, x-clickhouse-key, "+
				"x-clickhouse-database, Authorization")
			h.Set("Access-Control-Allow-Methods", "POST, GET, OPTIONS")
			h.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
		case r.URL.RawQuery == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			ok(w, r)
		default:
			s.serveStatement(w, r)
		}
	})
	return mux
}
