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

// ErrClosed says that a record came after Close.
var ErrClosed = errors.New("writer is closed")

// WriterConfig says how records are collected. The zero value will do.
type WriterConfig struct {
	// BatchMax is how many records one insert holds at most; zero means 1000.
	BatchMax int
	// Pause is the least time between the beginnings of two inserts. A lone record
	// that comes after it does not wait; of a stream of records all that come within
	// it share an insert. An insert makes two parts of some thirty files' worth and
	// has them merged later, which costs the engine some 40 ms of CPU for one record
	// and hardly more for fifty. Zero collects only while an insert is in flight.
	Pause time.Duration
	// QueueMax is how many records may wait; further writers wait for room. Zero means 10000.
	QueueMax int
}

// writer collects the rows of concurrent callers: while one insert is in flight
// the next batch collects, so a lone row waits for nobody and a crowd shares its
// inserts.
type writer[Row any] struct {
	db    *DB
	query string
	what  func(*Row) string // names a row in errors
	max   int
	pause time.Duration
	queue chan *pendingRow[Row]
	done  chan struct{}

	mu      sync.RWMutex  // held for reading while a row is put into the queue
	closing chan struct{} // closed by the first close
	once    sync.Once
	ctx     context.Context // ends when close stops waiting
	cancel  context.CancelFunc
}

// pendingRow is a row whose caller waits.
type pendingRow[Row any] struct {
	ctx     context.Context
	row     *Row
	what    string                // for errors
	ack     chan error            // holds one answer
	trouble atomic.Pointer[error] // what the store said last, nil if nothing
}

// fail is the error for the caller of a row.
func (p *pendingRow[Row]) fail(err error) error {
	if trouble := p.trouble.Load(); trouble != nil && *trouble != err {
		return fmt.Errorf("write %s: %w; the store said: %w", p.what, err, *trouble)
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

// writeGroup writes rows with an insert of their own, past the queue, and returns an
// error for each.
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
		default: // dropped, as ctx has ended
			errs[i] = p.fail(context.Cause(ctx))
		}
	}
	return errs
}

func (w *writer[Row]) enqueue(p *pendingRow[Row]) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	select {
	case <-w.closing: // first, as the queue may have room and be closed
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
		w.mu.Lock() // nobody is putting a row into the queue now
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
	var next time.Time // when an insert may begin
	for p := range w.queue {
		batch := w.collect([]*pendingRow[Row]{p}, time.Until(next))
		next = time.Now().Add(w.pause)
		w.flush(w.ctx, batch)
	}
}

// collect adds the rows that come until the wait is over, and those that are there then.
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

// flush inserts a batch and answers each caller. It repeats an insert that the
// store did not take, for as long as somebody waits for it and ctx lasts. When a row
// itself is at fault the batch is halved until that row fails alone.
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

// waiting drops the rows whose callers have gone.
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
