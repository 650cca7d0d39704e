package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"companyscore/internal/flush"
	"companyscore/sql"
)

// statementLog writes the statements of analysts to the table analyst_query, in batches. A statement is written within about
// statementLogPause of its end. Until the table exists, and while inserts fail, the newest statementLogMax are kept.
//
// The rows of an analyst have a rate, so that they cannot fill the disk. Statements above it are counted, and the count is a row.
type statementLog struct {
	pool   *pool
	spool  *spool
	insert string // statement up to FROM
	rows   *flush.Buffer[loggedStatement]
	loop   *flush.Loop

	mu    sync.Mutex
	rates map[string]*rate.Limiter // of bytes, by name of the analyst
	left  map[string]int           // statements without a row, by name of the analyst
}

const (
	statementLogPause = time.Second
	statementLogMax   = 10_000
	queryTextMax      = 10_000  // bytes
	refusedTextMax    = 300     // bytes of a statement that was refused
	rowBytes          = 300     // of a row without its text, about
	statementLogRate  = 8 << 10 // bytes a second of one analyst
	statementLogBurst = 4 << 20 // bytes of one analyst
)

// loggedStatement is a row of analyst_query.
type loggedStatement struct {
	StartedAt     string `json:"started_at"`
	Analyst       string `json:"analyst"`
	QueryID       string `json:"query_id"`
	Query         string `json:"query"`
	WaitMs        int64  `json:"wait_ms"`
	DurationMs    int64  `json:"duration_ms"`
	ReadRows      uint64 `json:"read_rows"`
	ReadBytes     uint64 `json:"read_bytes"`
	ResultRows    uint64 `json:"result_rows"`
	ResultBytes   uint64 `json:"result_bytes"`
	ExceptionCode int    `json:"exception_code"`
	Exception     string `json:"exception"`
}

// newStatementLog returns a log that writes until its loop is closed.
func newStatementLog(s *Server, own *pool) *statementLog {
	h := &statementLog{pool: own, spool: s.spool, insert: "INSERT INTO " + quoteName(sql.Private(s.cfg.Database)) + ".analyst_query",
		rates: map[string]*rate.Limiter{}, left: map[string]int{}}
	h.rows = &flush.Buffer[loggedStatement]{Max: statementLogMax, DropOldest: true, PageMax: statementLogMax, Write: h.write}
	cfg := flush.Config{Interval: statementLogPause, Trouble: "statements of analysts not written yet", Logger: s.cfg.Logger}
	h.loop = flush.Start(cfg, h.flush)
	return h
}

// add records a statement that has ended with e, nil for none.
func (h *statementLog) add(req *request, began time.Time, sum summary, e *exception) {
	size := queryTextMax
	if !req.ran {
		size = refusedTextMax
	}
	row := loggedStatement{StartedAt: began.UTC().Format(statementLogTime), Analyst: req.user.name, QueryID: req.queryID,
		Query:  strings.Clone(req.text[:min(len(req.text), size)]),
		WaitMs: req.waited.Milliseconds(), DurationMs: time.Since(began).Milliseconds(),
		ReadRows: sum.readRows, ReadBytes: sum.readBytes, ResultRows: sum.resultRows, ResultBytes: sum.resultBytes}
	if e != nil {
		row.ExceptionCode, row.Exception = e.code, e.name
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	limiter := h.rates[row.Analyst]
	if limiter == nil {
		limiter = rate.NewLimiter(statementLogRate, statementLogBurst)
		h.rates[row.Analyst] = limiter
	}
	if limiter.AllowN(began, rowBytes+len(row.QueryID)+len(row.Query)) {
		h.rows.Add(row)
	} else {
		h.left[row.Analyst]++
	}
}

const statementLogTime = "2006-01-02 15:04:05.000"

// flush writes the rows that wait, and the numbers of statements without one.
func (h *statementLog) flush(ctx context.Context) error {
	h.addLeft(time.Now())
	return h.rows.Flush(ctx)
}

// addLeft adds a row for each analyst with statements without a row.
func (h *statementLog) addLeft(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, n := range h.left {
		if h.rates[name].AllowN(now, rowBytes) {
			text := fmt.Sprintf("(%d statements without a row of their own: they came faster than %d bytes a second)", n, statementLogRate)
			h.rows.Add(loggedStatement{StartedAt: now.UTC().Format(statementLogTime), Analyst: name, Query: text})
			delete(h.left, name)
		}
	}
}

// write inserts rows. It does not cancel the insert when ctx ends: a canceled one may have stored the rows, which are then repeated.
func (h *statementLog) write(ctx context.Context, rows []loggedStatement) error {
	var data bytes.Buffer
	lines := json.NewEncoder(&data)
	for _, row := range rows {
		if err := lines.Encode(row); err != nil {
			return fmt.Errorf("encode statements: %w", err)
		}
	}
	path, err := h.spool.save(&data)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	c, err := h.pool.get(ctx, session{})
	if err != nil {
		return err
	}
	_, _, err = c.query(h.insert+" FROM INFILE "+quoteString(path)+" COMPRESSION 'none' FORMAT JSONEachRow", "Null", nil)
	h.pool.put(c, err == nil)
	return err
}
