// Package requestlog records every answered request: as a row, and in a count per minute.
//
// The counts are exact. Rows may be missing: answers from memory beyond a rate get none, and a
// full buffer drops further ones. A count has the number of its calls without a row, so rows
// and calls not stored add up to the calls.
//
// A [Log] keeps both in memory and writes them to a [Store] every second. It writes counts as
// totals, so a repeated write changes nothing.
package requestlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"companyscore/internal/account"
)

// Store writes requests. Both writes may be repeated with the same rows.
type Store interface {
	WriteRequests(ctx context.Context, rows []account.Request) error
	// WriteRequestCounts writes totals. Of several rows of one minute, kind and server the one
	// with the largest version counts.
	WriteRequestCounts(ctx context.Context, rows []account.RequestCount) error
}

// Config configures a Log.
type Config struct {
	// On is false if neither rows nor counts are written.
	On bool
	// HotRows is the maximum number of rows of answers from memory per second.
	HotRows int
}

// hotRowsDefault is the default of Config.HotRows.
const hotRowsDefault = 1000

// Flags adds the flags of c with their defaults.
func (c *Config) Flags(flags *pflag.FlagSet) {
	flags.BoolVar(&c.On, "request-log", true, "write the request log; without it /v1/usage/history counts no further requests")
	flags.IntVar(&c.HotRows, "request-rows", hotRowsDefault, "maximum rows of the request log per second for scores answered from memory; further ones are only counted")
}

// Validate returns an error if the rate is out of range.
func (c Config) Validate() error {
	if c.HotRows < 1 || c.HotRows > rowsMax {
		return fmt.Errorf("--request-rows %d: use 1 to %d", c.HotRows, rowsMax)
	}
	return nil
}

const (
	// interval is the time between two writes.
	interval = time.Second
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	// rowsMax bounds the rows in memory. A row takes about 300 bytes.
	rowsMax = 16_384
	// countsMax bounds the counts in memory. Requests of further kinds are counted by minute and
	// status alone. A count takes about 300 bytes.
	countsMax = 100_000
	// pageMax bounds the rows of one write.
	pageMax = 10_000
	// minutesKept is the number of earlier minutes in which requests can still be counted.
	minutesKept = 2
	// idMax is the maximum length of a request id in bytes.
	idMax = 128
)

// Request is one answered request, but for its id. Its strings are kept.
type Request struct {
	Kind    account.RequestKind
	Began   time.Time
	Took    time.Duration
	Bytes   int
	Charged bool
	JobID   string
	Hot     bool // answered by the hot path, so the rate of rows applies
}

// Log records requests. It may be used concurrently. A nil Log records nothing.
type Log struct {
	store     Store
	logger    *slog.Logger
	hotRows   int64
	countsMax int
	server    string
	started   time.Time

	rows chan row

	second   atomic.Int64 // second since started whose rows inSecond counts
	inSecond atomic.Int64 // rows of hot answers in that second
	dropped  atomic.Uint64
	skipped  atomic.Uint64

	mu     sync.RWMutex
	counts map[key]*count
	oldest int64 // earliest minute in which requests can still be counted

	// The fields below belong to the goroutine that writes.
	pending []account.Request // rows of a write that failed
	number  uint64            // number of the last row
	version uint64            // version of the last counts

	stop  context.CancelFunc
	ended sync.WaitGroup
}

// row is a request that waits to be written.
type row struct {
	kind    account.RequestKind
	id      [idMax]byte
	idLen   uint8
	charged bool
	began   time.Time
	took    time.Duration
	bytes   int
	jobID   string
}

// key is a minute since 1970 and the kind of requests.
type key struct {
	minute int64
	kind   account.RequestKind
}

// count counts the requests of a key. Each request adds to calls last, so totals read after
// calls include all of its requests.
type count struct {
	calls, notStored, charged, micros, bytes atomic.Uint64

	// written has the totals of the last successful write. It belongs to the goroutine that writes.
	written totals
}

// totals are the counters that show whether a count has changed.
type totals struct{ calls, notStored uint64 }

// Start returns a log that writes to the store until Close, or nil if the log is off.
func Start(cfg Config, store Store, logger *slog.Logger) *Log {
	if !cfg.On {
		return nil
	}
	l := newLog(cfg, store, logger)
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.ended.Go(func() { l.loop(ctx) })
	return l
}

func newLog(cfg Config, store Store, logger *slog.Logger) *Log {
	var id [8]byte
	rand.Read(id[:])
	l := &Log{
		store: store, logger: logger, hotRows: int64(cfg.HotRows), countsMax: countsMax, server: hex.EncodeToString(id[:]), started: time.Now(),
		rows: make(chan row, rowsMax), counts: make(map[key]*count), stop: func() {},
	}
	return l
}

// Record records a request and its id of at most 128 bytes, which it copies. It makes no network
// call and allocates nothing for a kind that was recorded in the same minute.
func (l *Log) Record(id []byte, r Request) {
	if l == nil {
		return
	}
	stored := (!r.Hot || l.hasRate(r.Began)) && l.push(id, &r)
	k := key{r.Began.Unix() / 60, r.Kind}
	l.mu.RLock()
	k.minute = max(k.minute, l.oldest)
	c := l.counts[k]
	if c != nil {
		c.add(&r, stored) // under the lock, so that the count is not removed meanwhile
	}
	l.mu.RUnlock()
	if c == nil {
		l.addNew(k, &r, stored)
	}
}

// addNew adds a request to a count that may not exist yet.
func (l *Log) addNew(k key, r *Request, stored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.minute = max(k.minute, l.oldest)
	l.countOf(k).add(r, stored)
}

// countOf returns the count of a key. If there are countsMax counts, it returns that of the
// minute and the status. l.mu must be locked for writing.
func (l *Log) countOf(k key) *count {
	c := l.counts[k]
	if c == nil && len(l.counts) >= l.countsMax {
		k.kind = account.RequestKind{Status: k.kind.Status}
		c = l.counts[k]
	}
	if c == nil {
		c = new(count)
		l.counts[k] = c
	}
	return c
}

func (c *count) add(r *Request, stored bool) {
	if !stored {
		c.notStored.Add(1)
	}
	if r.Charged {
		c.charged.Add(1)
	}
	c.micros.Add(uint64(r.Took.Microseconds()))
	c.bytes.Add(uint64(r.Bytes))
	c.calls.Add(1)
}

// hasRate reports whether a hot answer of this second gets a row.
func (l *Log) hasRate(now time.Time) bool {
	second := int64(now.Sub(l.started) / time.Second)
	if last := l.second.Load(); second > last && l.second.CompareAndSwap(last, second) {
		l.inSecond.Store(0)
	}
	if l.inSecond.Load() >= l.hotRows || l.inSecond.Add(1) > l.hotRows {
		l.skipped.Add(1)
		return false
	}
	return true
}

// push puts the row of a request into the buffer. It returns false if the buffer is full.
func (l *Log) push(id []byte, r *Request) bool {
	w := row{kind: r.Kind, charged: r.Charged, began: r.Began, took: r.Took, bytes: r.Bytes, jobID: r.JobID}
	w.idLen = uint8(copy(w.id[:], id))
	select {
	case l.rows <- w:
		return true
	default:
		l.dropped.Add(1)
		return false
	}
}

// loop writes every interval until ctx ends. It logs an error at most once in five seconds.
func (l *Log) loop(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := l.flush(ctx, time.Now())
		if err != nil && ctx.Err() == nil && time.Since(logged) > 5*time.Second {
			l.logger.Warn("requests not written yet", "err", err)
			logged = time.Now()
		}
	}
}

// flush writes rows, then counts. What it cannot write stays in memory.
func (l *Log) flush(ctx context.Context, now time.Time) error {
	err := errors.Join(l.flushRows(ctx), l.flushCounts(ctx))
	l.forget(now.Unix()/60 - minutesKept)
	return err
}

// flushRows writes the rows of the last write that failed, then those in the buffer.
func (l *Log) flushRows(ctx context.Context) error {
	for n := len(l.pending) + len(l.rows); n > 0; {
		if len(l.pending) == 0 {
			l.take(min(n, pageMax))
		}
		if err := l.writeRows(ctx); err != nil {
			return fmt.Errorf("write requests: %w", err)
		}
		n -= len(l.pending)
		clear(l.pending) // releases the ids
		l.pending = l.pending[:0]
	}
	return nil
}

func (l *Log) writeRows(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return l.store.WriteRequests(ctx, l.pending)
}

// take moves up to n rows from the buffer to pending.
func (l *Log) take(n int) {
	for range n {
		w := <-l.rows
		l.number++
		l.pending = append(l.pending, account.Request{
			RequestKind: w.kind, ID: string(w.id[:w.idLen]), At: w.began.UTC(), Took: w.took, Bytes: uint64(w.bytes),
			Charged: w.charged, JobID: w.jobID, Server: l.server, Number: l.number,
		})
	}
}

// flushCounts writes the counts that have changed since they were written.
func (l *Log) flushCounts(ctx context.Context) error {
	var rows []account.RequestCount
	var changed []*count
	l.version++
	l.mu.RLock()
	for k, c := range l.counts {
		now := totals{calls: c.calls.Load()} // first, see count
		now.notStored = c.notStored.Load()
		if now == c.written {
			continue
		}
		changed = append(changed, c)
		rows = append(rows, account.RequestCount{
			RequestKind: k.kind, Minute: time.Unix(k.minute*60, 0).UTC(), Server: l.server, Version: l.version,
			Calls: now.calls, NotStored: now.notStored, Charged: c.charged.Load(), Took: time.Duration(c.micros.Load()) * time.Microsecond, Bytes: c.bytes.Load(),
		})
	}
	l.mu.RUnlock()
	for first := 0; first < len(rows); first += pageMax {
		page := rows[first:min(first+pageMax, len(rows))]
		if err := l.writeCounts(ctx, page); err != nil {
			return fmt.Errorf("write counts of requests: %w", err)
		}
		for i, r := range page {
			changed[first+i].written = totals{r.Calls, r.NotStored}
		}
	}
	return nil
}

func (l *Log) writeCounts(ctx context.Context, rows []account.RequestCount) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return l.store.WriteRequestCounts(ctx, rows)
}

// forget removes the written counts of minutes before oldest, once per minute. Requests of
// these minutes are then counted in the minute oldest.
func (l *Log) forget(oldest int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if oldest <= l.oldest {
		return
	}
	l.oldest = oldest
	for k, c := range l.counts {
		if k.minute < oldest && c.written == (totals{c.calls.Load(), c.notStored.Load()}) {
			delete(l.counts, k)
		}
	}
}

// Close stops the log and writes what it has, unless ctx ends first. Rows that it cannot write
// are counted as not stored. Record must not be called afterwards.
func (l *Log) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.stop()
	l.ended.Wait()
	err := l.flushRows(ctx)
	if lost := len(l.pending) + len(l.rows); lost > 0 {
		l.abandon()
		err = fmt.Errorf("%d rows are lost: %w", lost, err)
	}
	return errors.Join(err, l.flushCounts(ctx))
}

// abandon drops all rows in memory and counts them as not stored.
func (l *Log) abandon() {
	l.take(len(l.rows))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.pending {
		l.countOf(key{max(r.At.Unix()/60, l.oldest), r.RequestKind}).notStored.Add(1)
	}
	l.dropped.Add(uint64(len(l.pending)))
	l.pending = nil
}
