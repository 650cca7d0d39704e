package status_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring/source/status"
)

func TestMain(m *testing.M) { stores.Main(m) }

func TestStatusOfWorkersIsRead(t *testing.T) {
	rdb, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	read := func(at time.Time) []status.Source {
		t.Helper()
		all, err := status.Read(t.Context(), rdb, at)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := read(time.Now()); len(got) != 0 {
		t.Fatalf("without a worker: %v", got)
	}
	board := status.NewBoard([]string{"dns", "facts", "sec"})
	failed := time.Now().UTC().Truncate(time.Millisecond)
	board.Note("sec", false, failed)
	board.Note("sec", false, failed.Add(time.Minute)) // silent since the first
	board.Note("dns", false, failed)
	board.Note("dns", true, failed.Add(time.Second))
	ctx, stop := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	publishing.Go(func() { board.Publish(ctx, rdb, slog.New(slog.DiscardHandler)) })
	wait.Until(t, "the status is written", func() bool { return len(read(time.Now())) > 0 })
	stop()
	publishing.Wait()
	want := []status.Source{{Name: "dns"}, {Name: "facts"}, {Name: "sec", SilentSince: failed}}
	if got := read(time.Now()); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := read(time.Now().Add(2 * time.Minute)); len(got) != 0 {
		t.Errorf("two minutes after the worker ended: %v", got)
	}
	if err := rdb.HSet(t.Context(), redis.SourceStatus(), "sec", "{").Err(); err != nil {
		t.Fatal(err)
	}
	if all, err := status.Read(t.Context(), rdb, time.Now()); err == nil {
		t.Errorf("a damaged status: %v", all)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC)
	f := func(want string, all ...status.Source) {
		t.Helper()
		if got := status.Describe(all); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("no worker runs now")
	f("a run asks imported facts alone", status.Source{Name: "facts"})
	f("a run asks 2 live sources, which can tell up to ", status.Source{Name: "dns"}, status.Source{Name: "facts"},
		status.Source{Name: "sec"})
	got := status.Describe([]status.Source{{Name: "dns"}, {Name: "sec", SilentSince: at}})
	if !strings.HasSuffix(got, " of 67 signals; no answer from sec since 2026-05-01 12:30") {
		t.Error(got)
	}
}
