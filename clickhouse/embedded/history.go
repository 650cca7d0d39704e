package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"companyscore/sql"
)

// history writes the statements of analysts to the table analyst_query, in batches. A statement is written within about historyPause of its end. Until the
// table exists, and while inserts fail, the newest historyMax are kept.
type history struct {
	pool   *pool
	spool  *spool
	logger *slog.Logger
	insert string // statement up to FROM

	mu      sync.Mutex
	pending []past
	wake    chan struct{}
	stopped chan struct{}
}

const (
	historyPause = time.Second
	historyMax   = 10_000
	queryTextMax = 10_000 // bytes
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
		insert: "INSERT INTO " + quoteName(sql.Private(s.cfg.Database)) + ".analyst_query"}
	go h.write(ctx)
	return h
}

// add records a statement that has ended with e, nil for none.
func (h *history) add(req *request, began time.Time, sum summary, e *exception) {
	row := past{StartedAt: began.UTC().Format("2006-01-02 15:04:05.000"), Analyst: req.user.name, QueryID: req.queryID, Query: req.text[:min(len(req.text), queryTextMax)],
		WaitMs: req.waited.Milliseconds(), DurationMs: time.Since(began).Milliseconds(),
		ReadRows: sum.readRows, ReadBytes: sum.readBytes, ResultRows: sum.resultRows, ResultBytes: sum.resultBytes}
	if e != nil {
		row.ExceptionCode, row.Exception = e.code, e.name
	}
	h.mu.Lock()
	h.pending = append(h.pending, row)
	h.pending = h.pending[max(0, len(h.pending)-historyMax):]
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// write inserts what is pending, at most once in historyPause, and a last time when ctx ends.
func (h *history) write(ctx context.Context) {
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
	h.mu.Lock()
	rows := h.pending
	h.mu.Unlock()
	if len(rows) == 0 {
		return nil
	}
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
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = h.pending[min(len(rows), len(h.pending)):]
	return nil
}
