package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Limits for bulk runs on two processors.
const (
	leastRunsPerSecond = 2000
	mostCPUPerRun      = 800 * time.Microsecond
	mostCallP99        = time.Second
	// fewestRuns is the smallest number of runs for which the limits apply.
	fewestRuns = 100_000
)

// BenchmarkColdRuns measures the CPU time of runs of facts alone per process: b.N companies,
// every second one with facts, by `run start --wait`, while an account posts one call per
// second. It fails if a limit is missed.
//
//	go test ./contract -run xxx -bench ColdRuns -benchtime 100000x
func BenchmarkColdRuns(b *testing.B) {
	s := start(b, "breakers: {cold_per_key: {limit: 1000000, window: 1h}}\n")
	s.importFacts(b, b.N, 2)
	key := s.customer(b, "enterprise").live
	domains := filepath.Join(s.data, "domains.txt")
	var text strings.Builder
	for i := range b.N {
		fmt.Fprintln(&text, madeUp(i))
	}
	if err := os.WriteFile(domains, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}

	before := s.cpu(b)
	calling, stop := context.WithCancel(b.Context())
	defer stop()
	latencies := make(chan []time.Duration, 1)
	go func() { latencies <- s.callEverySecond(calling, b, key) }()
	b.ResetTimer()
	began := time.Now()
	cmd := exec.CommandContext(b.Context(), s.binary, "run", "start", "--quiet", "--older-than", "0", "--from", domains, "--wait", "--data",
		s.data)
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	b.StopTimer()
	stop()
	if err != nil {
		b.Fatalf("run start: %v\n%s", err, out)
	}
	after := s.cpu(b)
	after["run-start"] = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	perSecond := float64(b.N) / took.Seconds()
	var total time.Duration
	for name := range after {
		after[name] = (after[name] - before[name]) / time.Duration(b.N) // of a run
		total += after[name]
	}
	var shares []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		shares = append(shares, fmt.Sprintf("%s %.3f (%.0f %%)", name, milliseconds(after[name]),
			100*after[name].Seconds()/total.Seconds()))
		b.ReportMetric(milliseconds(after[name]), name+"-cpu-ms/op")
	}
	calls := <-latencies
	slices.Sort(calls)
	var median, p99 time.Duration
	if len(calls) > 0 {
		median, p99 = calls[len(calls)/2], calls[len(calls)*99/100]
	}
	b.ReportMetric(perSecond, "runs/s")
	b.ReportMetric(milliseconds(total), "all-cpu-ms/op")
	b.ReportMetric(milliseconds(p99), "call-p99-ms")
	if b.N == 1 { // the go command first runs every benchmark once
		return
	}
	// Also logged, because a failed benchmark reports no metrics.
	b.Logf("%d runs in %.1f s: %.0f a second", b.N, took.Seconds(), perSecond)
	b.Logf("CPU of a run: %.3f ms, of which %s", milliseconds(total), strings.Join(shares, ", "))
	b.Logf("%d calls of another account, from POST to a complete job: median %.0f ms, p99 %.0f ms", len(calls), milliseconds(median),
		milliseconds(p99))
	if b.N < fewestRuns {
		return
	}
	if perSecond < leastRunsPerSecond {
		b.Errorf("%.0f runs a second, want at least %d", perSecond, leastRunsPerSecond)
	}
	if total > mostCPUPerRun {
		b.Errorf("%s of CPU a run, want at most %s", total, mostCPUPerRun)
	}
	if p99 > mostCallP99 {
		b.Errorf("the calls of the other account take up to %s (p99), want at most %s", p99, mostCallP99)
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// BenchmarkLoneCall measures the time from POST to a complete job without other load.
//
//	go test ./contract -run xxx -bench LoneCall -benchtime 50x
func BenchmarkLoneCall(b *testing.B) {
	s := start(b, "breakers: {cold_per_key: {limit: 1000000, window: 1h}}\n")
	s.importFacts(b, b.N+1, 1)
	key := s.customer(b, "enterprise").live
	if _, err := s.complete(b.Context(), key, madeUp(b.N)); err != nil { // opens connections
		b.Fatal(err)
	}
	var all []time.Duration
	b.ResetTimer()
	for i := range b.N {
		took, err := s.complete(b.Context(), key, madeUp(i))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, took)
	}
	b.StopTimer()
	slices.Sort(all)
	b.ReportMetric(milliseconds(all[len(all)/2]), "p50-ms")
	b.ReportMetric(milliseconds(all[len(all)*99/100]), "p99-ms")
}

// callEverySecond posts for one company per second at fixed times until ctx ends. It returns
// the times from when each call was due to the complete job.
func (s *system) callEverySecond(ctx context.Context, b *testing.B, key string) []time.Duration {
	var mu sync.Mutex
	var latencies []time.Duration
	var calls sync.WaitGroup
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			calls.Wait()
			return latencies
		case intended := <-tick.C:
			calls.Go(func() {
				_, err := s.complete(context.WithoutCancel(ctx), key, fmt.Sprintf("caller-%d.com", i))
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				latencies = append(latencies, time.Since(intended))
			})
		}
	}
}

// complete posts for a company, polls the job every 20 ms until it is complete, and returns
// the duration.
func (s *system) complete(ctx context.Context, key, domain string) (time.Duration, error) {
	began := time.Now()
	var job struct {
		ID     string `json:"job_id"`
		Status string `json:"status"`
	}
	if err := s.ask(ctx, "POST", "/v1/score", key, `{"domain":"`+domain+`"}`, http.StatusAccepted, &job); err != nil {
		return 0, err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for job.Status == "pending" {
		<-tick.C
		if err := s.ask(ctx, "GET", "/v1/jobs/"+job.ID, key, "", http.StatusOK, &job); err != nil {
			return 0, err
		}
	}
	if job.Status != "complete" {
		return 0, fmt.Errorf("the job of %s is %s", domain, job.Status)
	}
	return time.Since(began), nil
}

// ask sends a request and reads the answer. It fails unless the answer has the status.
func (s *system) ask(ctx context.Context, method, path, key, body string, want int, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != want {
		return fmt.Errorf("%s %s answered %d, want %d", method, path, res.StatusCode, want)
	}
	return json.NewDecoder(res.Body).Decode(into)
}
