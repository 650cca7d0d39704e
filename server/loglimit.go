package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// requestLinesMax bounds the warnings and errors about requests that are logged per second.
// During an outage every request fails, and one line for each could fill the disk.
const requestLinesMax = 10

// limitedHandler logs at most requestLinesMax warnings and errors per second, and then one
// record with the number of omitted ones. It does not limit lower levels.
type limitedHandler struct {
	slog.Handler
	*lineLimit
}

// lineLimit is shared by a limitedHandler and the handlers derived from it.
type lineLimit struct {
	summary slog.Handler // gets the counts

	mu      sync.Mutex
	began   time.Time // start of the current second
	lines   int
	leftOut int
}

func limitLines(to slog.Handler) *limitedHandler {
	return &limitedHandler{to, &lineLimit{summary: to}}
}

// Handle implements slog.Handler.
func (h *limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && !h.admit(time.Now()) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *limitedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limitedHandler{h.Handler.WithAttrs(attrs), h.lineLimit}
}

// WithGroup implements slog.Handler.
func (h *limitedHandler) WithGroup(name string) slog.Handler {
	return &limitedHandler{h.Handler.WithGroup(name), h.lineLimit}
}

// admit reports whether a record is within the limit now.
func (l *lineLimit) admit(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.began) >= time.Second && l.leftOut == 0 {
		l.began, l.lines = now, 0
	}
	if l.lines < requestLinesMax {
		l.lines++
		return true
	}
	if l.leftOut++; l.leftOut == 1 {
		time.AfterFunc(time.Second-now.Sub(l.began), l.flush)
	}
	return false
}

// flush logs the number of omitted records, if there are any.
func (l *lineLimit) flush() {
	l.mu.Lock()
	n := l.leftOut
	if n > 0 {
		l.began, l.lines, l.leftOut = time.Now(), 0, 0
	}
	l.mu.Unlock()
	if n == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), slog.LevelError, "lines about requests left out", 0)
	r.Add("lines", n, "limit_per_second", requestLinesMax)
	_ = l.summary.Handle(context.Background(), r) // an error of the log cannot be reported
}
