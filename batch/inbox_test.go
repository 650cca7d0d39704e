package batch_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"companyscore/batch"
	"companyscore/batch/inbox"
	"companyscore/batch/jobs"
	"companyscore/clickhouse"
	"companyscore/internal/table"
	"companyscore/scoring"
)

// receiver is a process with the inbox job.
func (s *site) receiver(dir string) *batch.Runner {
	s.Helper()
	cfg := batch.Config{
		Store: clickhouse.NewUniverse(s.db), Redis: s.client, Logger: slog.New(slog.DiscardHandler),
		Schedules: batch.Schedules{Count: "off", Movers: "off", Refresh: "off", Housekeeping: "off", Spreads: "off", Inbox: "off",
			CountEpoch: time.Minute, MoversEpoch: time.Minute},
		Refresh: batch.Refresh{
			RefreshTargets: table.RefreshTargets{Ages: table.RefreshAges{Asked: time.Hour, Others: time.Hour}}, Queue: s.queue,
		},
		Inbox: inbox.New(inbox.Config{Dir: dir, Store: clickhouse.NewFacts(s.db), Queue: s.queue, Redis: s.client,
			Logger: slog.New(slog.DiscardHandler)}),
	}
	r, err := batch.New(cfg)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func TestProcessesShareInbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "import"), 0o700),
		os.WriteFile(filepath.Join(dir, "import", "crm.csv"), []byte("domain,employees\na.com,5\nb.com,6\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lines []string
	var both sync.WaitGroup
	for range 2 {
		r := s.receiver(dir)
		both.Go(func() {
			if err := r.Once(t.Context(), []string{jobs.Inbox}, func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	all := strings.Join(lines, "\n")
	if len(lines) != 2 || strings.Count(all, "1 imports, 2 runs started") != 1 || strings.Count(all, "0 imports, 0 runs started") != 1 {
		t.Errorf("the processes report %s", all)
	}
	imports, err := clickhouse.NewFacts(s.db).Imports(t.Context(), 10)
	if err != nil || len(imports) != 1 {
		t.Errorf("imports %+v, %v", imports, err)
	}
	runs, err := s.queue.List(t.Context(), scoring.RunQueued, 10)
	if err != nil || len(runs) != 2 {
		t.Errorf("runs %+v, %v", runs, err)
	}
	if status, err := jobs.ReadStatus(t.Context(), s.client); err != nil || status[jobs.Inbox].Outcome != table.BatchOK {
		t.Errorf("status %+v, %v", status, err)
	}
	// A bad file fails the run that meets it, and the next one is good again.
	if err := os.WriteFile(filepath.Join(dir, "import", "bad.csv"), []byte("domain,staff\na.com,5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.receiver(dir)
	if err := r.Once(t.Context(), []string{jobs.Inbox}, func(string) {}); err == nil || !strings.Contains(err.Error(), "bad.csv: ") {
		t.Errorf("a bad file: %v", err)
	}
	if status, err := jobs.ReadStatus(t.Context(), s.client); err != nil || status[jobs.Inbox].Outcome != table.BatchFailed ||
		!strings.Contains(status[jobs.Inbox].Error, "bad.csv") {
		t.Errorf("status %+v, %v", status, err)
	}
	if err := r.Once(t.Context(), []string{jobs.Inbox}, func(string) {}); err != nil {
		t.Error(err)
	}
}
