package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestLinesAboutRequestsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		limited := limitLines(slog.NewTextHandler(&out, nil))
		logger := slog.New(limited)
		second := func(lines int) {
			out.Reset()
			for i := range lines {
				logger.With("request", i).Error("request failed")
			}
			logger.Info("not about an error")
			time.Sleep(time.Second)
			synctest.Wait()
			want := min(lines, requestLinesMax)
			if got := strings.Count(out.String(), "request failed"); got != want {
				t.Errorf("%d lines of %d", got, lines)
			}
			if count := fmt.Sprintf("lines=%d ", lines-want); strings.Contains(out.String(), "left out") != (lines > want) ||
				lines > want && !strings.Contains(out.String(), count) {
				t.Errorf("of %d lines: %s", lines, out.String())
			}
			if !strings.Contains(out.String(), "not about an error") {
				t.Error("a line of level info is gone")
			}
		}
		second(3)
		second(10)
		second(25)
		second(2_000)
		second(10)
		for range 12 {
			logger.WithGroup("g").Warn("budget not read")
		}
		out.Reset()
		limited.flush()
		if !strings.Contains(out.String(), "lines=2 ") {
			t.Errorf("at the end: %q", out.String())
		}
		out.Reset()
		time.Sleep(time.Minute)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("later: %q", out.String())
		}
	})
}

// An outage fails every request, and is logged ten times a second.
func TestFailedRequestsAreLoggedAtLimit(t *testing.T) {
	t.Parallel()
	lines := make(chan int64, 2000) // 1, or how many were left out
	cfg := newServer(t, panicking{}, new(bytes.Buffer)).Dependencies
	cfg.Metrics, cfg.Logger = prometheus.NewRegistry(), slog.New(counter(lines))
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if res, _ := get(t, s, "/v1/usage"); res.StatusCode != 500 {
			t.Fatalf("answered %d", res.StatusCode)
		}
	}
	s.log.flush()
	logged, summaries, left := 0, 0, int64(0)
	for total := int64(0); total < 1000; { // a panic is logged with its stack, and as a failed request
		n := <-lines
		if total += n; n > 1 {
			summaries++
			left += n
		} else {
			logged++
		}
	}
	if logged > requestLinesMax*(summaries+1) {
		t.Errorf("%d lines, and %d times a count, together of %d", logged, summaries, left)
	}
}

// counter is a slog.Handler that sends 1 for each record, and for a summary its count.
type counter chan int64

func (counter) Enabled(context.Context, slog.Level) bool { return true }
func (c counter) WithAttrs([]slog.Attr) slog.Handler     { return c }
func (c counter) WithGroup(string) slog.Handler          { return c }

func (c counter) Handle(_ context.Context, r slog.Record) error {
	n := int64(1)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "lines" {
			n = a.Value.Int64()
		}
		return true
	})
	c <- n
	return nil
}
