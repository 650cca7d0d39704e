package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"companyscore/sql"
)

// history writes the statements of analysts to the table analyst_query, in batches. A statement is written within about historyPause of its end. Until the
// table exists, and while inserts fail, the newest historyMax are kept.
//
// The rows of an analyst have a rate, so that they cannot fill the disk. Statements above it are counted, and the count is a row.
type history struct {
	pool   *pool
	spool  *spool
	logger *slog.Logger
	insert string // statement up to FROM

	mu      sync.Mutex
	pending []past
	rates   map[string]*rate.Limiter // of bytes, by name of the analyst
	left    map[string]int           // statements without a row, by name of the analyst
	wake    chan struct{}
	stopped chan struct{}
}

const (
	historyPause   = time.Second
	historyMax     = 10_000
	queryTextMax   = 10_000  // bytes
	refusedTextMax = 300     // bytes of a statement that was refused
	rowBytes       = 300     // of a row without its text, about
	historyRate    = 8 << 10 // bytes a second of one analyst
	historyBurst   = 4 << 20 // bytes of one analyst
)

// past is a row of analyst_query.
type past struct {
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

// newHistory returns a history that writes until ctx ends. stop waits for its end.
func newHistory(ctx context.Context, s *Server, own *pool) *history {
	h := &history{pool: own, spool: s.spool, logger: s.cfg.Logger, wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		rates: map[string]*rate.Limiter{}, left: map[string]int{},
		insert: "INSERT INTO " + quoteName(sql.Private(s.cfg.Database)) + ".analyst_query"}
	go h.run(ctx)
	return h
}

// add records a statement that has ended with e, nil for none.
func (h *history) add(req *request, began time.Time, sum summary, e *exception) {
	size := queryTextMax
	if !req.ran {
		size = refusedTextMax
	}
	row := past{StartedAt: began.UTC().Format(historyTime), Analyst: req.user.name, QueryID: req.queryID, Query: strings.Clone(req.text[:min(len(req.text), size)]),
		WaitMs: req.waited.Milliseconds(), DurationMs: time.Since(began).Milliseconds(),
		ReadRows: sum.readRows, ReadBytes: sum.readBytes, ResultRows: sum.resultRows, ResultBytes: sum.resultBytes}
	if e != nil {
		row.ExceptionCode, row.Exception = e.code, e.name
	}
	h.mu.Lock()
	limiter := h.rates[row.Analyst]
	if limiter == nil {
		limiter = rate.NewLimiter(historyRate, historyBurst)
		h.rates[row.Analyst] = limiter
	}
	if limiter.AllowN(began, rowBytes+len(row.QueryID)+len(row.Query)) {
		h.pending = append(h.pending, row)
		h.pending = h.pending[max(0, len(h.pending)-historyMax):]
	} else {
		h.left[row.Analyst]++
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

const historyTime = "2006-01-02 15:04:05.000"

// take returns what is pending and forgets it.
func (h *history) take(now time.Time) []past {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, n := range h.left {
		if h.rates[name].AllowN(now, rowBytes) {
			text := fmt.Sprintf("(%d statements without a row of their own: they came faster than %d bytes a second)", n, historyRate)
			h.pending = append(h.pending, past{StartedAt: now.UTC().Format(historyTime), Analyst: name, Query: text})
			delete(h.left, name)
		}
	}
	rows := h.pending
	h.pending = nil
	return rows
}

// putBack makes rows pending again, before those that came since.
func (h *history) putBack(rows []past) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = append(rows, h.pending...)
	h.pending = h.pending[max(0, len(h.pending)-historyMax):]
}

// run inserts what is pending, at most once in historyPause, and a last time when ctx ends.
func (h *history) run(ctx context.Context) {
	defer close(h.stopped)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for logged := false; ; {
		select {
		case <-ctx.Done():
			_ = h.flush(context.WithoutCancel(ctx))
			return
		case <-h.wake:
		}
		err := h.flush(ctx)
		if err != nil {
			if !logged {
				h.logger.Debug("statements of analysts wait to be written", "err", err)
			}
			select { // again after the pause
			case h.wake <- struct{}{}:
			default:
			}
		}
		logged = err != nil
		pause.Reset(historyPause)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
}

// flush inserts what is pending.
func (h *history) flush(ctx context.Context) error {
	rows := h.take(time.Now())
	if len(rows) == 0 {
		return nil
	}
	err := h.write(ctx, rows)
	if err != nil {
		h.putBack(rows)
	}
	return err
}

func (h *history) write(ctx context.Context, rows []past) error {
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
