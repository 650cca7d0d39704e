// Package report reads and writes the report of a bench run as JSON, and renders it as
// text, HTML page and comparison. docs/bench.md explains each field;
// report.schema.json is the JSON schema.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Schema is the version of the JSON form. It increases when the meaning of a field
// changes.
const Schema = 1

// Status is whether the figures of a bench run may be used.
type Status string

const (
	Valid              Status = "VALID"
	GeneratorSaturated Status = "GENERATOR_SATURATED"
	ConditionsDrifted  Status = "CONDITIONS_DRIFTED"
)

// Run is one bench run. Durations are in microseconds, sizes in bytes, shares in 0..1,
// unless the JSON name has another unit.
type Run struct {
	Schema      int         `json:"schema"`
	StartedAt   time.Time   `json:"started_at"`
	Settings    Settings    `json:"settings"`
	Verdict     Verdict     `json:"verdict"`
	Load        Load        `json:"load"`
	Headline    []string    `json:"headline"` // names of the scenario's own classes
	Classes     []Class     `json:"classes"`
	SLO         []SLO       `json:"slo"`
	Generator   Generator   `json:"generator"`
	Intervals   []Interval  `json:"intervals"`
	Server      *Server     `json:"server,omitempty"` // if processes were watched
	Jobs        *Jobs       `json:"jobs,omitempty"`   // of scenarios that start runs
	Fill        *Fill       `json:"fill,omitempty"`   // of scenario resident
	FindMax     *FindMax    `json:"find_max,omitempty"`
	Environment Environment `json:"environment"`
}

// Settings are the parameters of a bench run.
type Settings struct {
	Scenario    string  `json:"scenario"`
	Rate        float64 `json:"rate"` // per second; 0 is a closed loop
	Arrivals    string  `json:"arrivals,omitempty"`
	Seed        uint64  `json:"seed"`
	Duration    float64 `json:"duration_s"`
	Warmup      float64 `json:"warmup_s"`
	Connections int     `json:"connections"`
	Pipeline    int     `json:"pipeline"`
	Threads     int     `json:"threads"`
	Keys        int     `json:"keys"`
	Universe    int     `json:"universe"` // companies that requests name
	ColdShare   float64 `json:"cold_share,omitempty"`
	PollEvery   float64 `json:"poll_every_s,omitempty"`
	BatchSize   int     `json:"batch_size,omitempty"`
}

// Verdict is whether the figures may be used, with the checks behind it.
type Verdict struct {
	Status  Status   `json:"status"`
	Reasons []string `json:"reasons"` // empty when valid
	Checks  []Check  `json:"checks"`
}

// Check is one of the rules of the verdict.
type Check struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	OK    bool    `json:"ok"`
}

// Load counts requests and answers of the measured time.
type Load struct {
	Elapsed    float64 `json:"elapsed_s"`
	Planned    int64   `json:"planned"`
	Sent       int64   `json:"sent"`
	Answered   int64   `json:"answered"`
	Unexpected int64   `json:"unexpected"` // failures, and answers that the scenario does not expect
	Achieved   float64 `json:"achieved_per_s"`
	Reconnects int64   `json:"reconnects"`
}

// Quantiles of a duration, in microseconds.
type Quantiles struct {
	Mean float64 `json:"mean_us"`
	P50  float64 `json:"p50_us"`
	P90  float64 `json:"p90_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	Max  float64 `json:"max_us"`
}

// Class is one kind of answer to one kind of request.
type Class struct {
	Name      string    `json:"name"`
	Op        string    `json:"op"`
	Outcome   string    `json:"outcome"`
	Expected  bool      `json:"expected"`
	Count     int64     `json:"count"`
	Share     float64   `json:"share"` // of the answers to the same kind of request
	PerSecond float64   `json:"per_s"`
	Bytes     int64     `json:"bytes"`
	Latency   Quantiles `json:"latency"` // from when the request was due
	Service   Quantiles `json:"service"` // from when the request was sent
	Curve     []Point   `json:"curve"`   // of the latency
	// Histogram is that of the latency, from the first bin with answers to the last. Reports of older programs have none.
	Histogram []Bin `json:"histogram,omitempty"`
}

// Bin is the number of answers with a latency from the bound of the bin before to below its own.
type Bin struct {
	Below float64 `json:"below_us"` // 1, 2 or 5 times a power of ten
	Count int64   `json:"count"`
}

// Point is the latency at one percentile.
type Point struct {
	Percentile float64 `json:"percentile"`
	Latency    float64 `json:"us"`
}

// SLO is one latency limit and its result.
type SLO struct {
	Text     string  `json:"text"`
	Class    string  `json:"class"`
	Limit    float64 `json:"limit_us"`
	Measured float64 `json:"measured_us"`
	Met      bool    `json:"met"`
	Why      string  `json:"why,omitempty"` // reason of a miss other than the latency
}

// Generator is the delay and CPU time of the load generator.
type Generator struct {
	Pacing   Quantiles `json:"pacing"`  // from when a request was due to when the generator took it up
	Waiting  Quantiles `json:"waiting"` // from there until a connection was free
	CPU      float64   `json:"cpu_s"`
	CPUShare float64   `json:"cpu_share"` // of one core for each thread
	Priority string    `json:"priority"`  // normal, high or real-time
}

// Interval is one second. Its quantiles are those of the first headline class.
type Interval struct {
	At        float64 `json:"at_s"`
	Measured  bool    `json:"measured"`
	Sent      int64   `json:"sent"`
	Answered  int64   `json:"answered"`
	Failed    int64   `json:"failed"`
	Waiting   int64   `json:"waiting"`
	Headline  int64   `json:"headline"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Max       float64 `json:"max_us"`
	PacingP99 float64 `json:"pacing_p99_us"`
}

// Server is the CPU time and memory of the server's processes.
type Server struct {
	CPUPerRequest float64   `json:"cpu_per_request_us"` // of all processes, per answer
	Processes     []Process `json:"processes"`
	// OtherFirst and OtherLast are the shares of the machine's CPU time that other
	// processes used in the first and the last third, without the generator. Steal is
	// the share that a hypervisor took.
	OtherFirst float64 `json:"other_first_third"`
	OtherLast  float64 `json:"other_last_third"`
	Steal      float64 `json:"steal"`
}

// Process is one process of the server.
type Process struct {
	Name      string   `json:"name"`
	CPU       float64  `json:"cpu_s"`
	CPUShare  float64  `json:"cpu_share"` // of one core
	RSSStart  int64    `json:"rss_start"`
	RSSThird  int64    `json:"rss_one_third"`
	RSSThirds int64    `json:"rss_two_thirds"`
	RSSEnd    int64    `json:"rss_end"`
	Slope     float64  `json:"rss_slope_per_minute"` // by least squares over the last two thirds
	Samples   []Sample `json:"samples"`
}

// Sample is the memory of a process at one instant and its CPU share since the previous
// sample.
type Sample struct {
	At  float64 `json:"at_s"`
	RSS int64   `json:"rss"`
	CPU float64 `json:"cpu_share"`
}

// Jobs counts the started jobs by result.
type Jobs struct {
	Started   int64     `json:"started"`
	Complete  int64     `json:"complete"`
	Failed    int64     `json:"failed"`
	Unsettled int64     `json:"unsettled"` // still pending at the end
	ToScore   Quantiles `json:"to_score"`  // from the call to the poll that returned complete
}

// Fill is the result of loading all companies into the server's memory.
type Fill struct {
	Companies int64            `json:"companies"`
	Found     int64            `json:"found"`
	Seconds   float64          `json:"seconds"`
	RSSBefore map[string]int64 `json:"rss_before"`
	RSSAfter  map[string]int64 `json:"rss_after"`
}

// FindMax is the result of the search for the highest rate that meets the SLO.
type FindMax struct {
	Best  float64 `json:"best_rate"` // 0 if the first rate missed the SLO
	Limit string  `json:"limit"`     // what ended the search: slo, generator, steps
	Steps []Step  `json:"steps"`
}

// Step is one tested rate.
type Step struct {
	Rate     float64 `json:"rate"`
	Achieved float64 `json:"achieved_per_s"`
	Status   Status  `json:"status"`
	Met      bool    `json:"met"`
	P99      float64 `json:"p99_us"`
}

// Environment is the machine and the software of a bench run.
type Environment struct {
	Command    string            `json:"command"` // keys are left out
	CPU        string            `json:"cpu"`
	Cores      int               `json:"cores"`
	Memory     int64             `json:"memory"`
	Kernel     string            `json:"kernel"`
	Virtual    bool              `json:"virtual"` // runs on a hypervisor
	Go         string            `json:"go"`
	Commit     string            `json:"commit"`
	Versions   map[string]string `json:"versions"` // of servers, by name
	LoadBefore string            `json:"load_before"`
	LoadAfter  string            `json:"load_after"`
	Priority   string            `json:"priority"` // of the generator
	Stops      Stops             `json:"stops"`
}

// Stops are interruptions of busy processors by a hypervisor or the kernel, measured
// before a bench run.
type Stops struct {
	Count int `json:"count"` // of 0.1 ms and more
	// Share is the share of time that the most interrupted processor lost, 0 to 1.
	Share   float64 `json:"share"`
	Longest float64 `json:"longest_us"`
}

// Met reports whether every SLO was met.
func (r *Run) Met() bool {
	for _, s := range r.SLO {
		if !s.Met {
			return false
		}
	}
	return true
}

// ClassNamed returns the class with a name, nil if there is none.
func (r *Run) ClassNamed(name string) *Class {
	for i := range r.Classes {
		if r.Classes[i].Name == name {
			return &r.Classes[i]
		}
	}
	return nil
}

// QuantilesOf returns the quantiles of a histogram of nanoseconds.
func QuantilesOf(h *hdrhistogram.Histogram) Quantiles {
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	us := func(ns int64) float64 { return round(float64(ns)/1000, 2) }
	at := func(p float64) float64 { return us(h.ValueAtPercentile(p)) }
	return Quantiles{Mean: round(h.Mean()/1000, 2), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: us(h.Max())}
}

// CurveOf returns points of a histogram of nanoseconds. Percentiles are denser near 100,
// as far as the number of values allows.
func CurveOf(h *hdrhistogram.Histogram) []Point {
	var points []Point
	add := func(p float64) {
		points = append(points, Point{Percentile: round(p, 6), Latency: round(float64(h.ValueAtPercentile(p))/1000, 2)})
	}
	total := float64(h.TotalCount())
	add(0)
	for tail := 1.0; tail*total >= 10; tail /= 10 { // tail is the share above
		for _, step := range []float64{0.9, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1} {
			if tail*step*total >= 1 {
				add(100 * (1 - tail*step))
			}
		}
	}
	add(100)
	return points
}

// HistogramOf returns the bins of a histogram of nanoseconds.
func HistogramOf(h *hdrhistogram.Histogram) []Bin {
	var bins []Bin
	below, step := 1.0, 0 // microseconds
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for float64(bar.From)/1000 >= below {
			if bins != nil {
				bins = append(bins, Bin{})
			}
			below *= []float64{2, 2.5, 2}[step]
			step = (step + 1) % 3
			if bins != nil {
				bins[len(bins)-1].Below = below
			}
		}
		if bins == nil {
			bins = []Bin{{Below: below}}
		}
		bins[len(bins)-1].Count += bar.Count
	}
	return bins
}

func round(x float64, digits int) float64 {
	scale := 1.0
	for range digits {
		scale *= 10
	}
	if x < 0 {
		return float64(int64(x*scale-0.5)) / scale
	}
	return float64(int64(x*scale+0.5)) / scale
}

// fileMaxBytes limits the size of a report that Read reads.
const fileMaxBytes = 64 << 20

// Read reads a report from a file.
func Read(path string) (*Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	defer f.Close()
	var r Run
	if err := json.NewDecoder(io.LimitReader(f, fileMaxBytes)).Decode(&r); err != nil {
		return nil, fmt.Errorf("read report %s: %w", path, err)
	}
	switch {
	case r.Schema == 0 || r.Settings.Scenario == "":
		return nil, fmt.Errorf("read report %s: not a report of `bench run`", path)
	case r.Schema != Schema:
		return nil, fmt.Errorf("read report %s: schema %d, but this program reads %d: repeat the bench run", path, r.Schema, Schema)
	}
	return &r, nil
}

// WriteFile replaces a file atomically with the output of write. On an error of write,
// the file is unchanged.
func WriteFile(path string, write func(w io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write report: %w", err), os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// JSON writes the report as JSON.
func (r *Run) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
