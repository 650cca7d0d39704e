package contract

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

var (
	coldRate = flag.Float64("cold-rate", 100, "cold calls a second of BenchmarkColdCall")
	measured = flag.String("binary", "", "program to measure instead of this one; for comparing two versions")
)

// pollEvery is the time between two polls of BenchmarkColdCall.
const pollEvery = 2 * time.Second

// BenchmarkColdCall measures the CPU time of a cold call per process, from POST to the score.
// It sends b.N calls for companies with facts at fixed times, polls each job until it is
// settled and reads the score. CPU times are those of whole processes, per call.
//
//	go test ./contract -run xxx -bench ColdCall -benchtime 3000x
func BenchmarkColdCall(b *testing.B) {
	s := start(b, "breakers: {cold_per_key: {limit: 1000000, window: 1h}}\n")
	key := s.customer(b, "enterprise").live
	s.importFacts(b, b.N, 1)
	client := &fasthttp.Client{MaxConnsPerHost: 2000, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	call := func(method, path, body string, want int, into any) error {
		req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(res)
		req.SetRequestURI(s.base + path)
		req.Header.SetMethod(method)
		req.Header.Set("X-API-Key", key)
		if body != "" {
			req.Header.SetContentType("application/json")
			req.SetBodyString(body)
		}
		if err := client.DoTimeout(req, res, 30*time.Second); err != nil {
			return err
		}
		if res.StatusCode() != want {
			return fmt.Errorf("%s %s answered %d %s", method, path, res.StatusCode(), res.Body())
		}
		return json.Unmarshal(res.Body(), into)
	}
	var mu sync.Mutex
	var posts, done []time.Duration
	one := func(domain string, intended time.Time) error {
		var job struct {
			ID     string `json:"job_id"`
			Status string `json:"status"`
		}
		if err := call("POST", "/v1/score", `{"domain":"`+domain+`"}`, 202, &job); err != nil {
			return err
		}
		posted := time.Since(intended)
		for job.Status == "pending" {
			time.Sleep(pollEvery)
			if err := call("GET", "/v1/jobs/"+job.ID, "", 200, &job); err != nil {
				return err
			}
		}
		ended := time.Since(intended)
		if job.Status != "complete" {
			return fmt.Errorf("%s is %s", domain, job.Status)
		}
		var score struct {
			Composite float64 `json:"composite_score"`
		}
		if err := call("GET", "/v1/score/"+domain, "", 200, &score); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		posts, done = append(posts, posted), append(done, ended)
		return nil
	}
	if err := one("warm.com", time.Now()); err != nil {
		b.Fatal(err)
	}
	posts, done = nil, nil

	before := s.cpu(b)
	b.ResetTimer()
	began := time.Now()
	var calls sync.WaitGroup
	for i := range b.N {
		intended := began.Add(time.Duration(float64(i) / *coldRate * float64(time.Second)))
		time.Sleep(time.Until(intended))
		calls.Go(func() {
			if err := one(madeUp(i), intended); err != nil {
				b.Error(err)
			}
		})
	}
	calls.Wait()
	b.StopTimer()
	total := time.Duration(0)
	for name, after := range s.cpu(b) {
		total += after - before[name]
		b.ReportMetric(float64((after-before[name]).Microseconds())/1000/float64(b.N), name+"-cpu-ms/op")
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "all-cpu-ms/op")
	slices.Sort(posts)
	slices.Sort(done)
	for name, all := range map[string][]time.Duration{"post": posts, "settled": done} {
		if len(all) > 0 {
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"-p99-ms")
		}
	}
}

func madeUp(i int) string { return fmt.Sprintf("company-%d.com", i) }

// importFacts imports facts of every step-th of n companies.
func (s *system) importFacts(b *testing.B, n, step int) {
	b.Helper()
	var text strings.Builder
	text.WriteString("domain,company_name,country,industry,employees,revenue_usd,founded_year\n")
	for i := 0; i < n; i += step {
		fmt.Fprintf(&text, "%s,Company %d,US,Software,%d,%d,%d\n", madeUp(i), i, 10+i%5000, 100_000*(1+i%900), 1980+i%40)
	}
	path := filepath.Join(s.data, "companies.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	s.cli(b, "facts", "import", path)
}

// cpu returns the CPU time of the processes of the system by name.
func (s *system) cpu(b *testing.B) map[string]time.Duration {
	b.Helper()
	used := map[string]time.Duration{"server": processCPU(b, s.runtime.PID)}
	for name, pid := range s.runtime.Processes {
		used[name] = processCPU(b, pid)
	}
	return used
}

// processCPU returns the CPU time of a process with a resolution of 10 ms.
func processCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skipf("CPU times are read from /proc: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest) // from the third on
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	if errUser != nil || errSystem != nil {
		b.Fatalf("read CPU time of process %d: %q", pid, text)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
