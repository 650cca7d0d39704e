// Package embedded serves ClickHouse's HTTP protocol with the engine in libchdb. Clients are clickhouse-go, curl and other HTTP clients.
//
// A request passes through the files in this order: request.go parses headers and URL, users.go finds the user, gate.go counts the requests of analysts and
// provides a slot, statement.go and lexer.go parse the SQL, settings.go and guard.go reject what an analyst may not do, pool.go provides a connection,
// spool.go transfers data, output.go and answer.go write the response, history.go records it. watch.go ends the process if its memory or a statement gets out
// of hand; running.go knows whose statement it was. access.go, engine.go and chdb.go set up and call the library. docs/adr/0002-embedded-clickhouse.md,
// docs/adr/0017-analysts.md and docs/adr/0021-bounds-of-the-engine.md have the reasons.
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
	"strings"
	"sync"
	"syscall"
	"time"

	"companyscore/internal/analyst/roster"
	"companyscore/internal/config"
	"companyscore/internal/process"
	"companyscore/sql"
)

// Config configures the engine, its users and its limits.
type Config struct {
	Library         string        // path of libchdb; "" means Find()
	Path            string        // data directory, created if missing; one process at a time may have it open
	Database        string        // public database, the only one that analysts may read; "" means sql.Public
	User            string        // name of the service's user; "" means "companyscore"
	Password        string        // password of User, required
	AnalystPassword string        // password of the read-only user "analyst"; "" disables that user, not those of the roster
	Connections     int           // maximum concurrent statements of User; 0 means 2 per CPU, at least 4
	QueueWait       time.Duration // maximum wait of a statement for a connection; 0 means 10 s
	AnalystSlots    int           // maximum concurrent statements of all analysts; 0 means 2 per CPU
	AnalystWait     time.Duration // maximum wait of an analyst's statement for a slot; 0 means 1 min
	MaxInsert       int64         // maximum bytes of data of one INSERT; 0 means 4 GiB
	Memory          uint64        // bytes that the process may have in memory, at least 512 MiB; 0 means half of the machine's. Only Linux tells them
	Idle            time.Duration // timeout of one read from or write to a client; 0 means 5 min
	Logger          *slog.Logger  // nil means slog.Default()
	Listener        net.Listener  // listener that Run serves and closes
	Ready           func()        // called by Run after it began to serve; may be nil

	// End ends the process, because the engine does not: reason says why. Run sets it; with nil nothing watches the engine.
	End func(reason string)

	allowed string // what analysts may name; "" means allowed.txt
}

// Validate returns an error that names every invalid field of c.
func (c Config) Validate() error {
	var faults []error
	fault := func(wrong bool, text string) {
		if wrong {
			faults = append(faults, errors.New(text))
		}
	}
	fault(c.Path == "", "Path is empty: name the data directory")
	fault(c.Password == "", "Password is empty")
	fault(c.User == analyst, `User is "analyst", which is the name of the read-only user`)
	fault(c.Connections < 0, "Connections is negative")
	fault(c.QueueWait < 0, "QueueWait is negative")
	fault(c.AnalystSlots < 0, "AnalystSlots is negative")
	fault(c.AnalystWait < 0, "AnalystWait is negative")
	fault(c.MaxInsert < 0, "MaxInsert is negative")
	fault(c.Idle < 0, "Idle is negative")
	return errors.Join(append(faults, config.CheckClickHouseMemory(c.Memory))...)
}

func (c *Config) setDefaults() (err error) {
	if c.Library == "" {
		if c.Library, err = Find(); err != nil {
			return err
		}
	}
	if c.Database == "" {
		c.Database = sql.Public
	}
	if c.User == "" {
		c.User = "companyscore"
	}
	if c.Connections == 0 {
		c.Connections = max(4, 2*runtime.NumCPU())
	}
	if c.QueueWait == 0 {
		c.QueueWait = 10 * time.Second
	}
	if c.AnalystSlots == 0 {
		c.AnalystSlots = 2 * runtime.NumCPU()
	}
	if c.AnalystWait == 0 {
		c.AnalystWait = time.Minute
	}
	if c.MaxInsert == 0 {
		c.MaxInsert = 4 << 30
	}
	if c.Memory == 0 {
		if machine := process.MachineMemory(); machine > 0 {
			c.Memory = max(config.ClickHouseMemoryMin, machine/2)
		}
	}
	if c.Idle == 0 {
		c.Idle = 5 * time.Minute
	}
	if c.allowed == "" {
		c.allowed = allowedText
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Path, err = filepath.Abs(c.Path)
	return err
}

// Server answers ClickHouse's HTTP protocol. Its methods may be called concurrently.
type Server struct {
	cfg    Config
	engine *engine
	users  *users
	gate   *gate // of analysts
	past   *history
	spool  *spool
	now    *running // statements of analysts
	http   *http.Server
	stop   context.CancelCauseFunc // cancels the context of every request
	close  func(context.Context) error

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
	s := &Server{cfg: cfg, engine: e}
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

// watch returns the watch over this process.
func (s *Server) watch() *watch {
	w := &watch{running: s.now, memory: s.cfg.Memory, resident: process.Resident, logger: s.cfg.Logger}
	w.most = w.memory + (max(w.memory, process.MachineMemory())-w.memory)/2
	w.end = func(reason string, statements map[string]string) {
		s.blame(statements, reason)
		s.cfg.End(reason)
	}
	return w
}

// blame refuses the analysts whose statements ended the engine, and forgets what runs.
func (s *Server) blame(statements map[string]string, reason string) {
	var blamed []string
	var err error
	if len(statements) > 0 {
		blamed, err = roster.Blame(roster.RefusalsPath(s.cfg.Path), statements, reason, time.Now())
	}
	s.cfg.Logger.Error("the engine has ended", "reason", reason, "refused", blamed, "err", errors.Join(err, s.now.clear()))
}

// temporary returns the bytes that answers to analysts may have on the disk of the data, and as many temporary files of their statements.
func temporary(path string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		return 0, fmt.Errorf("read free space of %s: %w", path, err)
	}
	return min(temporaryMax, int64(disk.Bavail)*int64(disk.Bsize)/4), nil
}

// temporaryMax is the maximum of temporary, in bytes.
const temporaryMax = 16 << 30

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
	s.users = &users{roster: file{path: roster.Path(s.cfg.Path)}, refused: file{path: roster.RefusalsPath(s.cfg.Path)}, pool: reading, guard: guard, logger: s.cfg.Logger}
	s.users.builtIn = []*user{{name: s.cfg.User, password: sha256.Sum256([]byte(s.cfg.Password)), pool: own}}
	if s.cfg.AnalystPassword != "" {
		first := s.users.analyst(analyst, sha256.Sum256([]byte(s.cfg.AnalystPassword)), roster.Default)
		s.users.builtIn = append(s.users.builtIn, first)
	}
	s.past = newHistory(s, own)
	var once sync.Once
	var failed error
	s.close = func(ctx context.Context) error {
		once.Do(func() {
			if err := s.past.loop.Close(ctx); err != nil {
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

// Handler returns the HTTP handler: / runs statements. /ping, /replicas_status and / without parameters return "Ok.", and OPTIONS tells a page of another
// host that it may send statements, which need a password.
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
			h.Set("Access-Control-Allow-Headers", "origin, x-requested-with, x-clickhouse-format, x-clickhouse-user, x-clickhouse-key, x-clickhouse-database, Authorization")
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

func (s *Server) serveStatement(w http.ResponseWriter, r *http.Request) {
	body := &bodyReader{Reader: r.Body, control: http.NewResponseController(w), idle: s.cfg.Idle}
	req, err := s.parseRequest(r, body)
	if req == nil {
		req = &request{}
	}
	began := time.Now()
	out := newOutput(w, req, s.cfg.Idle)
	defer out.close()
	h := w.Header()
	h.Set("X-ClickHouse-Server-Display-Name", "companyscore embedded ClickHouse")
	h.Set("X-ClickHouse-Timezone", s.engine.zone)
	if req.queryID != "" {
		h.Set("X-ClickHouse-Query-Id", req.queryID)
	}
	if r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Origin", "*")
	}
	analyst := req.user != nil && req.user.guard != nil
	var t *ticket
	if err == nil && analyst {
		if err = s.users.refusal(req.user.name, began); err == nil {
			t, err = s.gate.enter(req.user.name, req.user.guard.limits.Statements)
		}
	}
	if err != nil {
		h.Set("Connection", "close") // the body is not read, not even to skip it
	}
	var sum summary
	switch {
	case err != nil:
	case analyst:
		defer t.leave()
		body.until = began.Add(bodyTimeout)
		sum, err = s.runForAnalyst(r.Context(), req, out, t)
	default:
		sum, err = s.run(r.Context(), req, out, nil)
	}
	if err == nil {
		err = out.finish(sum)
	}
	if err != nil {
		e := s.asException(err)
		if analyst {
			e = s.forAnalyst(e, req.user)
			s.past.add(req, began, sum, e)
		}
		out.fail(e, s.engine.version)
	} else if analyst {
		s.past.add(req, began, sum, nil)
	}
}

// runForAnalyst is run for an analyst. Shutdown cancels the statement at once, and a failed write to the client does.
func (s *Server) runForAnalyst(ctx context.Context, req *request, out *output, t *ticket) (summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(s.analysts, func() {
		cancel(errPoolClosed)
		_ = out.control.SetWriteDeadline(time.Now())
	})()
	out.spool, out.kill = s.spool, cancel
	return s.run(ctx, req, out, t)
}

// asException converts err to an exception. It logs errors that are neither exceptions nor cancellations.
func (s *Server) asException(err error) *exception {
	var e *exception
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, errPoolClosed), errors.Is(err, errClientGone):
		return newException(codeCancelled, "Query was cancelled: %v", err)
	}
	s.cfg.Logger.Error("embedded ClickHouse: request failed", "err", err)
	return newException(codeUnknownException, "%v", err)
}

// helloQuery is the first query of clickhouse-go on each of its connections; see hello.
const helloQuery = "SELECT displayName(), version(), revision(), timezone()"

// run executes the statement of a request and writes its result to out. t is the ticket of an analyst, nil for the service.
func (s *Server) run(ctx context.Context, req *request, out *output, t *ticket) (summary, error) {
	head, err := io.ReadAll(io.LimitReader(req.body, maxQuery+1))
	if err != nil {
		return summary{}, newException(codeBadArguments, "read the request: %v", err)
	}
	req.text = string(head)
	st, err := parseStatement(req.text)
	switch {
	case err != nil:
		return summary{}, err
	case len(st.text) > maxQuery:
		return summary{}, newException(codeQueryTooLarge, "The statement is larger than %d bytes", maxQuery)
	case req.revision > 0 && req.format == "Native" && strings.TrimSpace(st.text) == helloQuery:
		block, err := hello(s.engine, req.revision)
		if err == nil {
			_, err = out.Write(block)
		}
		return summary{readRows: 1, resultRows: 1}, err
	case st.verb == "SYSTEM" && (st.target == "SHUTDOWN" || st.target == "KILL"):
		return summary{}, newException(codeNotImplemented, "SYSTEM %s would end the process that the engine lives in", st.target)
	case req.user.guard != nil && st.hasData:
		_, err := req.user.guard.check(st)
		return summary{}, err
	}
	text := st.text
	if st.verb == "DROP" {
		text = withoutSync(text)
	}
	if st.hasData {
		path, err := s.spool.save(io.MultiReader(strings.NewReader(string(head[st.data:])), req.body))
		if err != nil {
			return summary{}, err
		}
		defer os.Remove(path)
		text = st.withInput(path)
	}

	if t != nil {
		if text, err = req.setFromStatement(text); err != nil {
			return summary{}, err
		}
		began := time.Now()
		defer t.release()
		err = t.slot(ctx)
		req.waited = time.Since(began)
		if err != nil {
			return summary{}, err
		}
		if most := time.Duration(req.user.guard.limits.Seconds) * time.Second; req.limit == 0 || req.limit > most {
			req.limit = min(most, executionMaxSeconds*time.Second)
		}
	}
	c, err := req.user.pool.get(ctx, req.session)
	if err != nil {
		return summary{}, err
	}
	clean := false
	defer func() { req.user.pool.put(c, clean) }()
	if req.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.limit, newException(codeTimeoutExceeded, "Timeout exceeded: maximum: %s", req.limit))
		defer cancel()
	}
	if t != nil {
		out.ctx = ctx // with the limit: a statement over it must not wait for its client
		ended, err := s.now.add(ctx, req.user.name, text, out.kill)
		if err != nil {
			return summary{}, err
		}
		defer ended()
		if st, err = req.user.guard.admit(ctx, c, text, req.format, req.params); err != nil {
			return summary{}, err
		}
		text, req.ran = st.text, true
	}
	format := req.format
	if st.format != "" && !st.hasData {
		req.format = st.format
	}
	var sum summary
	// A buffered result (hold) needs no pipe; creating one costs more than a point read. Results of the analyst have any
	// size and always stream through the pipe.
	if st.selects() && !(req.hold && req.user.guard == nil) {
		sum, err = s.spool.stream(ctx, c, st, format, req.params, out)
	} else {
		var result []byte
		if result, sum, err = c.queryContext(ctx, text, format, req.params); err == nil {
			_, err = out.Write(result)
		}
	}
	clean = err == nil && st.keepsSession()
	return sum, err
}
