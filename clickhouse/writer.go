package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed says that a record came after Close.
var ErrClosed = errors.New("writer is closed")

// WriterConfig says how records are gathered. The zero value will do.
type WriterConfig struct {
	// BatchMax is how many records one insert holds at most; zero means 1000.
	BatchMax int
	// QueueMax is how many records may wait; further writers wait for room. Zero means 10000.
	QueueMax int
}

// writer gathers the records of concurrent callers: while one insert is under
// way the next batch collects, so a lone record waits for nobody and a crowd
// shares its inserts.
type writer struct {
	db    *DB
	max   int
	queue chan *pendingRow
	done  chan struct{}

	mu      sync.RWMutex  // held for reading while a row is put into the queue
	closing chan struct{} // closed by the first close
	once    sync.Once
	ctx     context.Context // ends when close stops waiting
	cancel  context.CancelFunc
}

// pendingRow is a record whose caller waits.
type pendingRow struct {
	ctx     context.Context
	row     *recordRow
	ack     chan error            // holds one answer
	trouble atomic.Pointer[error] // what the store said last, nil if nothing
}

// fail is the error for the caller of a row.
func (p *pendingRow) fail(err error) error {
	if trouble := p.trouble.Load(); trouble != nil && *trouble != err {
		return fmt.Errorf("write record of %s: %w; the store said: %w", p.row.Domain, err, *trouble)
	}
	return fmt.Errorf("write record of %s: %w", p.row.Domain, err)
}

func newWriter(db *DB, cfg WriterConfig) *writer {
	if cfg.BatchMax == 0 {
		cfg.BatchMax = 1000
	}
	if cfg.QueueMax == 0 {
		cfg.QueueMax = 10_000
	}
	w := &writer{db: db, max: cfg.BatchMax, queue: make(chan *pendingRow, cfg.QueueMax), done: make(chan struct{}), closing: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go w.loop()
	return w
}

// write puts a row into the queue and waits until it is durable.
func (w *writer) write(ctx context.Context, row *recordRow) error {
	p := &pendingRow{ctx: ctx, row: row, ack: make(chan error, 1)}
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

func (w *writer) enqueue(p *pendingRow) error {
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

func (w *writer) close(ctx context.Context) error {
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

func (w *writer) loop() {
	defer close(w.done)
	for p := range w.queue {
		batch := []*pendingRow{p}
		for len(batch) < w.max {
			more, ok := w.tryNext()
			if !ok {
				break
			}
			batch = append(batch, more)
		}
		w.flush(batch)
	}
}

func (w *writer) tryNext() (*pendingRow, bool) {
	select {
	case p, ok := <-w.queue:
		return p, ok
	default:
		return nil, false
	}
}

// flush inserts a batch and answers each caller. It repeats an insert that the
// store did not take, for as long as somebody waits for it. When a row itself is
// at fault the batch is halved until that row fails alone.
func (w *writer) flush(batch []*pendingRow) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		batch = waiting(batch)
		if len(batch) == 0 {
			return
		}
		err := w.insert(batch)
		switch {
		case isBadData(err) && len(batch) > 1:
			half := len(batch) / 2
			w.flush(batch[:half])
			w.flush(batch[half:])
			return
		case err == nil, isBadData(err), w.ctx.Err() != nil:
			answer(batch, err)
			return
		}
		for _, p := range batch {
			p.trouble.Store(&err)
		}
		select {
		case <-w.ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (w *writer) insert(batch []*pendingRow) error {
	rows := make([]*recordRow, len(batch))
	for i, p := range batch {
		rows[i] = p.row
	}
	return insert(w.ctx, w.db, scoreInsert, rows)
}

// waiting drops the rows whose callers have gone.
func waiting(batch []*pendingRow) []*pendingRow {
	kept := batch[:0:0]
	for _, p := range batch {
		if p.ctx.Err() == nil {
			kept = append(kept, p)
		}
	}
	return kept
}

func answer(batch []*pendingRow, err error) {
	for _, p := range batch {
		if err == nil {
			p.ack <- nil
		} else {
			p.ack <- p.fail(err)
		}
	}
}
