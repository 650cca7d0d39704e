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

	"companyscore/internal/flush"
	"companyscore/internal/table"
)

// Store writes requests. Both writes may be repeated with the same rows.
type Store interface {
	WriteRequests(ctx context.Context, rows []table.Request) error
	// WriteRequestCounts writes totals. Of several rows of one minute, kind and server the one
	// with the largest version counts.
	WriteRequestCounts(ctx context.Context, rows []table.RequestCount) error
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
	flags.IntVar(&c.HotRows, "request-rows", hotRowsDefault,
		"maximum rows of the request log per second for scores answered from memory; further ones are only counted")
}

// Validate returns an error if the rate is out of range.
func (c Config) Validate() error {
	if c.HotRows < 1 || c.HotRows > rowsMax {
		return fmt.Errorf("--request-rows %d: use 1 to %d", c.HotRows, rowsMax)
	}
	return nil
}

const (
	// interval is the time between two writes of rows and counts, and writeTimeout bounds them.
	interval     = time.Second
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
	Kind    table.RequestKind
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
	hotRows   int64
	countsMax int
	server    string
	started   time.Time

	loop   *flush.Loop
	rows   *flush.Buffer[row]
	number atomic.Uint64 // number of the last row

	second   atomic.Int64 // second since started whose rows inSecond counts
	inSecond atomic.Int64 // rows of hot answers in that second
	dropped  atomic.Uint64
	skipped  atomic.Uint64

	mu     sync.RWMutex
	counts map[key]*count
	oldest int64 // earliest minute in which requests can still be counted

	version uint64 // version of the last counts. It belongs to the goroutine that writes.
}

// row is a request that waits to be written.
type row struct {
	number  uint64
	kind    table.RequestKind
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
	kind   table.RequestKind
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
	l := newLog(cfg, store)
	l.loop = flush.Start(flush.Config{Interval: interval, Timeout: writeTimeout, Trouble: "requests not written yet", Logger: logger},
		func(ctx context.Context) error { return l.flush(ctx, time.Now()) })
	return l
}

func newLog(cfg Config, store Store) *Log {
	var id [8]byte
	rand.Read(id[:])
	l := &Log{
		store: store, hotRows: int64(cfg.HotRows), countsMax: countsMax, server: hex.EncodeToString(id[:]), started: time.Now(),
		counts: make(map[key]*count),
	}
	l.rows = &flush.Buffer[row]{Max: rowsMax, PageMax: pageMax, Write: l.writeRows}
	return l
}

// Record records a request and its id of at most 128 bytes, which it copies. It makes no network
// call. For a kind that was recorded in the same minute it allocates nothing but room for rows.
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
		k.kind = table.RequestKind{Status: k.kind.Status}
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
	w := row{number: l.number.Add(1), kind: r.Kind, charged: r.Charged, began: r.Began, took: r.Took, bytes: r.Bytes, jobID: r.JobID}
	w.idLen = uint8(copy(w.id[:], id))
	if !l.rows.Add(w) {
		l.dropped.Add(1)
		return false
	}
	return true
}

// flush writes rows, then counts. What it cannot write stays in memory.
func (l *Log) flush(ctx context.Context, now time.Time) error {
	err := errors.Join(l.rows.Flush(ctx), l.flushCounts(ctx))
	l.forget(now.Unix()/60 - minutesKept)
	return err
}

// writeRows writes rows of the buffer.
func (l *Log) writeRows(ctx context.Context, rows []row) error {
	requests := make([]table.Request, len(rows))
	for i := range rows {
		w := &rows[i]
		requests[i] = table.Request{
			RequestKind: w.kind, ID: string(w.id[:w.idLen]), At: w.began.UTC(), Took: w.took, Bytes: uint64(w.bytes),
			Charged: w.charged, JobID: w.jobID, Server: l.server, Number: w.number,
		}
	}
	return l.store.WriteRequests(ctx, requests)
}

// flushCounts writes the counts that have changed since they were written.
func (l *Log) flushCounts(ctx context.Context) error {
	var rows []table.RequestCount
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
		rows = append(rows, table.RequestCount{
			RequestKind: k.kind, Minute: time.Unix(k.minute*60, 0).UTC(), Server: l.server, Version: l.version,
			Calls: now.calls, NotStored: now.notStored, Charged: c.charged.Load(), Took: time.Duration(c.micros.Load()) * time.Microsecond,
			Bytes: c.bytes.Load(),
		})
	}
	l.mu.RUnlock()
	for first := 0; first < len(rows); first += pageMax {
		page := rows[first:min(first+pageMax, len(rows))]
		if err := l.store.WriteRequestCounts(ctx, page); err != nil {
			return err
		}
		for i, r := range page {
			changed[first+i].written = totals{r.Calls, r.NotStored}
		}
	}
	return nil
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
	l.loop.Stop()
	return l.flushLast(ctx)
}

// flushLast writes what is in memory. It drops the rows that it cannot write and counts them as not stored.
func (l *Log) flushLast(ctx context.Context) error {
	err := l.rows.Flush(ctx)
	if lost := l.rows.Drain(); len(lost) > 0 {
		l.abandon(lost)
		err = fmt.Errorf("%d rows are lost: %w", len(lost), err)
	}
	return errors.Join(err, l.flushCounts(ctx))
}

// abandon counts rows as not stored.
func (l *Log) abandon(rows []row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range rows {
		l.countOf(key{max(rows[i].began.Unix()/60, l.oldest), rows[i].kind}).notStored.Add(1)
	}
	l.dropped.Add(uint64(len(rows)))
}
