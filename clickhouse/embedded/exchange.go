package embedded

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// serveStatement takes a request through its steps to the engine, answers it and records it. A step that fails, or that completes the
// result itself, is the last one.
func (s *Server) serveStatement(w http.ResponseWriter, r *http.Request) {
	x := s.newExchange(w, r)
	defer x.close()
	err := x.take(
		x.readRequest,
		x.findUser,
		x.openSession,
		x.forAnalysts(x.refuse),
		x.forAnalysts(x.count),
		x.readBody,
		x.parse,
		x.answerHello,
		x.forAnalysts(x.applySettings),
		x.forService(x.saveData),
		x.forAnalysts(x.endWithServer),
		x.forAnalysts(x.waitForSlot),
		x.takeConnection,
		x.limitTime,
		x.forAnalysts(x.noteRunning),
		x.forAnalysts(x.guard),
		x.run,
	)
	failed := x.answer(err)
	x.record(failed)
	if x.out.broken {
		panic(http.ErrAbortHandler) // the closed connection marks the result as incomplete
	}
}

// exchange is a request and its answer. Its steps are called one after the other, in the order of serveStatement.
type exchange struct {
	server *Server
	http   *http.Request
	query  url.Values // parameters of the address
	began  time.Time
	body   *bodyReader
	rest   io.Reader // of the body: data behind the statement
	req    *request
	out    *output
	ticket *ticket // of an analyst, once counted

	reading   bool             // the body is read; without, the connection serves no other request
	ctx       context.Context  // of the statement
	statement statement        // to run, without its tokens
	clauses   []settingsClause // at the end of the statement, as sent
	conn      *libraryConn
	clean     bool // the session of conn is as it was
	sum       summary
	complete  bool // the result is complete
	ends      []func()
}

// newExchange returns the exchange of a request and sets the headers that each answer has. The caller calls close.
func (s *Server) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{server: s, http: r, query: r.URL.Query(), began: time.Now(), req: new(request), ctx: r.Context(),
		body: &bodyReader{Reader: r.Body, control: http.NewResponseController(w), idle: s.cfg.Idle}}
	x.out = newOutput(w, x.req, s.cfg.Idle)
	h := w.Header()
	h.Set("X-ClickHouse-Server-Display-Name", "companyscore embedded ClickHouse")
	h.Set("X-ClickHouse-Timezone", s.engine.zone)
	if r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Origin", "*")
	}
	return x
}

// close ends the request, which is answered.
func (x *exchange) close() {
	if x.ticket != nil {
		x.ticket.leave()
	}
	x.out.close()
}

// take calls steps until one fails or completes the result. Then it calls what the steps gave to atEnd.
func (x *exchange) take(steps ...func() error) error {
	defer func() {
		for _, end := range slices.Backward(x.ends) {
			end()
		}
	}()
	for _, step := range steps {
		if err := step(); err != nil || x.complete {
			return err
		}
	}
	return nil
}

// atEnd registers a function that take calls when the statement has ended, the last one first. The answer may still be on its way to the
// client.
func (x *exchange) atEnd(f func()) { x.ends = append(x.ends, f) }

// isAnalyst reports whether the request is known to be that of an analyst.
func (x *exchange) isAnalyst() bool { return x.req.user != nil && x.req.user.guard != nil }

// forAnalysts returns a step that only requests of analysts take.
func (x *exchange) forAnalysts(step func() error) func() error {
	return func() error {
		if !x.isAnalyst() {
			return nil
		}
		return step()
	}
}

// forService returns a step that only requests of the service take.
func (x *exchange) forService(step func() error) func() error {
	return func() error {
		if x.isAnalyst() {
			return nil
		}
		return step()
	}
}

// readRequest reads the headers and the address, except what depends on the user.
func (x *exchange) readRequest() error { return x.req.read(x.http, x.query) }

// findUser sets the user, by name and password.
func (x *exchange) findUser() (err error) {
	if x.req.user, err = x.server.users.find(credentials(x.http, x.query)); err != nil {
		return err
	}
	x.req.text = x.query.Get("query") // if no more is read
	x.out.w.Header().Set("X-ClickHouse-Query-Id", x.req.queryID)
	return nil
}

// openSession sets the database, the settings and the parameters that the address asks for.
func (x *exchange) openSession() error { return x.req.openSession(x.http, x.query) }

// refuse rejects an analyst whose statements have ended the engine.
func (x *exchange) refuse() error { return x.server.users.refusal(x.req.user.name, x.began) }

// count counts the request until it is answered, before anything of its body is read.
func (x *exchange) count() (err error) {
	x.ticket, err = x.server.gate.enter(x.req.user.name, x.req.user.guard.limits.Statements)
	return err
}

// readBody reads the statement. It leaves the data of a long INSERT in x.rest.
func (x *exchange) readBody() error {
	frame := uint32(frameMax)
	if x.isAnalyst() {
		frame = analystFrameMax
		x.body.until = x.began.Add(bodyTimeout)
	}
	body, err := decoded(x.body, x.http.Header.Get("Content-Encoding"), on(x.query, "decompress"), frame)
	if err != nil {
		return err
	}
	x.reading, x.rest = true, body
	if x.req.text != "" {
		x.rest = io.MultiReader(strings.NewReader(x.req.text+"\n"), body)
	}
	head, err := io.ReadAll(io.LimitReader(x.rest, maxQuery+1))
	if err != nil {
		return newException(codeBadArguments, "read the request: %v", err)
	}
	x.req.text = string(head)
	return nil
}

// parse outlines the statement and rejects what no user may send. An analyst's INSERT ends here, as its data are not read. Tokens take
// up to 32 times the memory of their text: few statements of analysts are parsed at a time, and those that wait have no tokens.
func (x *exchange) parse() (err error) {
	if x.isAnalyst() {
		x.server.parsing <- struct{}{}
		defer func() { <-x.server.parsing }()
	}
	st, err := parseStatement(x.req.text)
	switch {
	case err != nil:
		return err
	case len(st.text) > maxQuery:
		return newException(codeQueryTooLarge, "The statement is larger than %d bytes", maxQuery)
	case st.verb == "SYSTEM" && (st.target == "SHUTDOWN" || st.target == "KILL"):
		return newException(codeNotImplemented, "SYSTEM %s would end the process that the engine lives in", st.target)
	case st.verb == "INSERT" && x.isAnalyst():
		return x.req.user.guard.readonly()
	case st.verb == "DROP":
		st.text = st.withoutSync()
	}
	x.clauses = settingsClauses(st.tokens)
	x.statement, x.statement.tokens = st, nil
	return nil
}

// answerHello answers the first query of clickhouse-go, without the engine.
func (x *exchange) answerHello() error {
	if x.req.revision == 0 || x.req.format != "Native" || strings.TrimSpace(x.statement.text) != helloQuery {
		return nil
	}
	block, err := hello(x.server.engine, x.req.revision)
	if err == nil {
		_, err = x.out.Write(block)
	}
	x.sum, x.complete = summary{readRows: 1, resultRows: 1}, true
	return err
}

// applySettings moves the settings at the end of the statement into the session, and bounds the time of the statement.
func (x *exchange) applySettings() (err error) {
	if x.statement.text, err = x.req.setFromStatement(x.statement, x.clauses); err != nil {
		return err
	}
	if most := time.Duration(x.req.user.guard.limits.Seconds) * time.Second; x.req.limit == 0 || x.req.limit > most {
		x.req.limit = min(most, executionMaxSeconds*time.Second)
	}
	return nil
}

// saveData writes the data of an INSERT to a file, from which the statement then reads.
func (x *exchange) saveData() error {
	if !x.statement.hasData {
		return nil
	}
	path, err := x.server.spool.save(io.MultiReader(strings.NewReader(x.req.text[x.statement.data:]), x.rest))
	if err != nil {
		return err
	}
	x.atEnd(func() { _ = os.Remove(path) })
	x.statement.text = x.statement.withInput(path)
	return nil
}

// endWithServer makes Shutdown cancel the statement at once. A failed write to the client cancels it too.
func (x *exchange) endWithServer() error {
	ctx, cancel := context.WithCancelCause(x.ctx)
	stop := context.AfterFunc(x.server.analysts, func() {
		cancel(errPoolClosed)
		_ = x.out.control.SetWriteDeadline(time.Now())
	})
	x.atEnd(func() { stop() })
	x.ctx, x.out.spool, x.out.kill = ctx, x.server.spool, cancel
	return nil
}

// waitForSlot waits until the analyst may run one more statement.
func (x *exchange) waitForSlot() error {
	began := time.Now()
	x.atEnd(x.ticket.release)
	err := x.ticket.slot(x.ctx)
	x.req.waited = time.Since(began)
	return err
}

// takeConnection takes a connection with the session of the request. It goes back to the pool if its session is as it was.
func (x *exchange) takeConnection() (err error) {
	pool := x.req.user.pool
	if x.conn, err = pool.get(x.ctx, x.req.session); err != nil {
		return err
	}
	x.atEnd(func() { pool.put(x.conn, x.clean) })
	return nil
}

// limitTime starts the time that the statement has.
func (x *exchange) limitTime() error {
	if x.req.limit > 0 {
		exceeded := newException(codeTimeoutExceeded, "Timeout exceeded: maximum: %s", x.req.limit)
		ctx, cancel := context.WithTimeoutCause(x.ctx, x.req.limit, exceeded)
		x.atEnd(cancel)
		x.ctx = ctx
	}
	x.out.ctx = x.ctx // a statement over its limit must not wait for its client
	return nil
}

// noteRunning adds the statement to those that are blamed if the engine ends.
func (x *exchange) noteRunning() error {
	ended, err := x.server.now.add(x.ctx, x.req.user.name, x.statement.text, x.out.kill)
	if err == nil {
		x.atEnd(ended)
	}
	return err
}

// guard replaces the statement by the one that the guard admits.
func (x *exchange) guard() (err error) {
	x.statement, err = x.req.user.guard.admit(x.ctx, x.conn, x.statement.text, x.req.format, x.req.params)
	x.statement.tokens = nil
	x.req.ran = err == nil
	return err
}

// run runs the statement and writes its result to x.out.
func (x *exchange) run() (err error) {
	st, format := x.statement, x.req.format
	if st.format != "" && !st.hasData {
		x.req.format = st.format
	}
	// A buffered result (hold) needs no pipe; creating one costs more than a point read. Results of analysts have any size and always go
	// through it.
	if st.selects() && !(x.req.hold && !x.isAnalyst()) {
		x.sum, err = x.server.spool.stream(x.ctx, x.conn, st, format, x.req.params, x.out)
	} else {
		var result []byte
		if result, x.sum, err = x.conn.queryContext(x.ctx, st.text, format, x.req.params); err == nil {
			_, err = x.out.Write(result)
		}
	}
	x.clean = err == nil && st.keepsSession()
	return err
}

// answer completes the answer. err is that of the steps; answer returns it, or that of sending the result, as the client got it, nil for
// none.
func (x *exchange) answer(err error) *exception {
	if err == nil {
		err = x.out.finish(x.sum)
	}
	if err == nil {
		return nil
	}
	e := x.server.asException(err)
	if x.isAnalyst() {
		e = x.server.forAnalyst(e, x.req.user)
	}
	if !x.reading {
		x.out.w.Header().Set("Connection", "close") // the body is not read, not even to skip it
	}
	x.out.fail(e, x.server.engine.version)
	return e
}

// record adds the statement of an analyst to the history. e is its error, nil for none.
func (x *exchange) record(e *exception) {
	if x.isAnalyst() {
		x.server.statements.add(x.req, x.began, x.sum, e)
	}
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
