package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"companyscore/internal/retry"
)

// ErrClosed is the error of a write after Close.
var ErrClosed = errors.New("writer is closed")

// WriterConfig configures how writes share inserts. The zero value is valid.
type WriterConfig struct {
	// BatchMax is the maximum number of records per insert; zero means 1000.
	BatchMax int
	// Pause is the minimum time between the starts of two inserts. Records that arrive
	// within it share an insert; a record that arrives later does not wait. An insert
	// with its later merges costs the engine about 40 ms of CPU, for 1 record or for 50.
	// Zero collects only while an insert is in flight.
	Pause time.Duration
	// QueueMax is the maximum number of queued records; further writes block. Zero means 10000.
	QueueMax int
}

// writer inserts the rows of concurrent callers together. Rows that arrive during an
// insert share the next one. It is safe for concurrent use.
type writer[Row any] struct {
	db    *DB
	query string
	what  func(*Row) string // names a row in errors
	max   int
	pause time.Duration
	queue chan *pendingRow[Row]
	done  chan struct{}

	mu      sync.RWMutex  // read lock for a send to queue, write lock to close it
	closing chan struct{} // closed by the first close
	once    sync.Once
	ctx     context.Context // of the inserts; canceled when close returns
	cancel  context.CancelFunc
}

// pendingRow is a row that is not written yet.
type pendingRow[Row any] struct {
	ctx     context.Context
	row     *Row
	what    string                // name of the row in errors
	ack     chan error            // receives the result; buffer of 1
	trouble atomic.Pointer[error] // last transient error, nil if none
}

// fail returns the error for the caller of a row: err, and the last transient error.
func (p *pendingRow[Row]) fail(err error) error {
	if trouble := p.trouble.Load(); trouble != nil && *trouble != err {
		return fmt.Errorf("write %s: %w; last error of ClickHouse: %w", p.what, err, *trouble)
	}
	return fmt.Errorf("write %s: %w", p.what, err)
}

func newWriter[Row any](db *DB, cfg WriterConfig, query string, what func(*Row) string) *writer[Row] {
	if cfg.BatchMax == 0 {
		cfg.BatchMax = 1000
	}
	if cfg.QueueMax == 0 {
		cfg.QueueMax = 10_000
	}
	w := &writer[Row]{
		db: db, query: query, what: what, max: cfg.BatchMax, pause: cfg.Pause,
		queue: make(chan *pendingRow[Row], cfg.QueueMax), done: make(chan struct{}), closing: make(chan struct{}),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go w.loop()
	return w
}

// write puts a row into the queue and waits until it is durable.
func (w *writer[Row]) write(ctx context.Context, row *Row) error {
	p := &pendingRow[Row]{ctx: ctx, row: row, what: w.what(row), ack: make(chan error, 1)}
	if err := w.enqueue(p); err != nil {
		return err
	}
	select {
	case err := <-p.ack:
		return err
	case <-ctx.Done():
		return p.fail(context.Cause(ctx))
	}
}

// writeGroup writes rows with a separate insert that bypasses the queue. It returns one
// error per row.
func (w *writer[Row]) writeGroup(ctx context.Context, rows []*Row) []error {
	batch := make([]*pendingRow[Row], len(rows))
	for i, row := range rows {
		batch[i] = &pendingRow[Row]{ctx: ctx, row: row, what: w.what(row), ack: make(chan error, 1)}
	}
	w.flush(ctx, batch)
	errs := make([]error, len(rows))
	for i, p := range batch {
		select {
		case errs[i] = <-p.ack:
		default: // flush skipped the row, as ctx has ended
			errs[i] = p.fail(context.Cause(ctx))
		}
	}
	return errs
}

func (w *writer[Row]) enqueue(p *pendingRow[Row]) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	select {
	case <-w.closing: // checked first: a send to a closed queue panics
		return ErrClosed
	default:
	}
	select {
	case w.queue <- p:
		return nil
	case <-w.closing:
		return ErrClosed
	case <-p.ctx.Done():
		return p.fail(context.Cause(p.ctx))
	}
}

func (w *writer[Row]) close(ctx context.Context) error {
	w.once.Do(func() {
		close(w.closing)
		w.mu.Lock() // waits for sends in progress
		close(w.queue)
		w.mu.Unlock()
	})
	defer w.cancel()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		w.cancel()
		<-w.done
		return fmt.Errorf("close writer: %w", ctx.Err())
	}
}

func (w *writer[Row]) loop() {
	defer close(w.done)
	var next time.Time // earliest start of the next insert
	for p := range w.queue {
		batch := w.collect([]*pendingRow[Row]{p}, time.Until(next))
		next = time.Now().Add(w.pause)
		w.flush(w.ctx, batch)
	}
}

// collect adds the rows that arrive within wait, then those already queued, up to w.max.
func (w *writer[Row]) collect(batch []*pendingRow[Row], wait time.Duration) []*pendingRow[Row] {
	if wait > 0 {
		over := time.NewTimer(wait)
		defer over.Stop()
		for waiting := true; waiting && len(batch) < w.max; {
			select {
			case more, ok := <-w.queue:
				if !ok {
					return batch
				}
				batch = append(batch, more)
			case <-over.C:
				waiting = false
			}
		}
	}
	for len(batch) < w.max {
		more, ok := w.tryNext()
		if !ok {
			break
		}
		batch = append(batch, more)
	}
	return batch
}

func (w *writer[Row]) tryNext() (*pendingRow[Row], bool) {
	select {
	case p, ok := <-w.queue:
		return p, ok
	default:
		return nil, false
	}
}

// flush inserts a batch and returns the result to each caller. It retries errors that are not of the data
// while ctx and the context of at least one caller are not done. If the data are invalid,
// it splits the batch in halves until the invalid row fails alone.
func (w *writer[Row]) flush(ctx context.Context, batch []*pendingRow[Row]) {
	pauses := retry.Backoff(50*time.Millisecond, time.Second)
	for {
		batch = waiting(batch)
		if len(batch) == 0 {
			return
		}
		err := w.insert(ctx, batch)
		switch {
		case isBadData(err) && len(batch) > 1:
			half := len(batch) / 2
			w.flush(ctx, batch[:half])
			w.flush(ctx, batch[half:])
			return
		case err == nil, isBadData(err), ctx.Err() != nil:
			answer(batch, err)
			return
		}
		for _, p := range batch {
			p.trouble.Store(&err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

func (w *writer[Row]) insert(ctx context.Context, batch []*pendingRow[Row]) error {
	rows := make([]*Row, len(batch))
	for i, p := range batch {
		rows[i] = p.row
	}
	return insert(ctx, w.db, w.query, rows)
}

// waiting returns the rows whose callers' contexts have not ended.
func waiting[Row any](batch []*pendingRow[Row]) []*pendingRow[Row] {
	kept := batch[:0:0]
	for _, p := range batch {
		if p.ctx.Err() == nil {
			kept = append(kept, p)
		}
	}
	return kept
}

func answer[Row any](batch []*pendingRow[Row], err error) {
	for _, p := range batch {
		if err == nil {
			p.ack <- nil
		} else {
			p.ack <- p.fail(err)
		}
	}
}
