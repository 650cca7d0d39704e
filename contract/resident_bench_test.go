package contract

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"companyscore/internal/redis"
	"companyscore/internal/scorecache"
	"companyscore/scoring"
)

var companies = flag.Int("companies", 1_000_000, "companies of BenchmarkResident")

// batchOf is the number of companies per batch call of BenchmarkResident.
const batchOf = 1000

// BenchmarkResident measures the memory of a million scores in one server, the time to load
// them with batch calls of a thousand, and b.N random reads with two callers per processor.
//
//	go test ./contract -run xxx -bench Resident -benchtime 200000x
func BenchmarkResident(b *testing.B) {
	s := start(b, "")
	key := s.customer(b, "enterprise").live
	s.fillRedis(b, *companies)
	client := &fasthttp.Client{MaxConnsPerHost: 100, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	call := func(method, path string, body []byte, check func(res *fasthttp.Response) error) error {
		req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(res)
		req.SetRequestURI(s.base + path)
		req.Header.SetMethod(method)
		req.Header.Set("X-API-Key", key)
		req.SetBodyRaw(body)
		if err := client.DoTimeout(req, res, 30*time.Second); err != nil {
			return err
		}
		if res.StatusCode() != 200 {
			return fmt.Errorf("%s %s answered %d %s", method, path, res.StatusCode(), res.Body())
		}
		return check(res)
	}
	before := residentKB(b, s.runtime.PID)
	began := time.Now()
	var filling errgroup.Group
	filling.SetLimit(2)
	for from := 0; from < *companies; from += batchOf {
		filling.Go(func() error {
			body := []byte(`{"domains":[`)
			for i := range batchOf {
				body = fmt.Appendf(body, "%q,", madeUp(from+i))
			}
			body[len(body)-1] = ']'
			return call("POST", "/v1/scores/batch", append(body, '}'), func(res *fasthttp.Response) error {
				if n := bytes.Count(res.Body(), []byte(`"status":200`)); n != batchOf {
					return fmt.Errorf("%d of %d companies have a score", n, batchOf)
				}
				return nil
			})
		})
	}
	if err := filling.Wait(); err != nil {
		b.Fatal(err)
	}
	fill := time.Since(began)
	filled := residentKB(b, s.runtime.PID)

	var reading errgroup.Group
	latencies := make([][]time.Duration, 2*runtime.NumCPU())
	hits := make([]int, len(latencies))
	cpu := processCPU(b, s.runtime.PID)
	b.ResetTimer()
	for w := range latencies {
		reading.Go(func() error {
			for i := w; i < b.N; i += len(latencies) {
				began := time.Now()
				err := call("GET", "/v1/score/"+madeUp(rand.IntN(*companies)), nil, func(res *fasthttp.Response) error {
					if string(res.Header.Peek("Server-Timing")) == "l1" {
						hits[w]++
					}
					return nil
				})
				if err != nil {
					return err
				}
				latencies[w] = append(latencies[w], time.Since(began))
			}
			return nil
		})
	}
	if err := reading.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	all := slices.Concat(latencies...)
	slices.Sort(all)
	hit := 0
	for _, n := range hits {
		hit += n
	}
	b.ReportMetric(fill.Seconds(), "fill-s")
	b.ReportMetric(float64(before)/1024, "empty-MB")
	b.ReportMetric(float64(filled)/1024, "filled-MB")
	b.ReportMetric(float64(residentKB(b, s.runtime.PID))/1024, "read-MB")
	b.ReportMetric(100*float64(hit)/float64(len(all)), "hit-%")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64((processCPU(b, s.runtime.PID)-cpu).Microseconds())/float64(b.N), "server-cpu-us/op")
}

// fillRedis writes scores of n companies to Redis as workers do.
func (s *system) fillRedis(b *testing.B, n int) {
	b.Helper()
	client, err := redis.Open(b.Context(), s.runtime.RedisURL)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	rec, err := scoring.Score(scoring.Input{Domain: "example.com", Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	if err := scorecache.Put(b.Context(), client, rec); err != nil {
		b.Fatal(err)
	}
	kept, err := client.Get(b.Context(), redis.Score("example.com")).Result()
	if err != nil {
		b.Fatal(err)
	}
	for from := 0; from < n; from += 10_000 {
		pipe := client.Pipeline()
		for i := from; i < min(from+10_000, n); i++ {
			pipe.Set(b.Context(), redis.Score(madeUp(i)), strings.ReplaceAll(kept, "example.com", madeUp(i)), time.Hour)
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		_, err := pipe.Exec(ctx)
		cancel()
		if err != nil {
			b.Fatal(err)
		}
	}
}

// residentKB returns the resident memory of a process.
func residentKB(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skipf("memory is read from /proc: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return kb
}
