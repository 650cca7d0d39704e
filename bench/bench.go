// Package bench measures a running service as its clients see it. A bench run sends one
// scenario at a fixed rate, groups the answers by the store that answered, samples the
// processes of the server, and returns a verdict on its own figures. docs/bench.md
// explains the results.
package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"companyscore/bench/load"
	"companyscore/bench/report"
)

// Config describes a bench run. Scenario, Address, Keys and Universe are required,
// except for scenario null.
type Config struct {
	Scenario string
	Address  string // host:port
	Keys     []string
	Universe *Universe

	Rate                  float64 // per second; 0 keeps all connections busy
	Arrivals              load.Arrivals
	Seed                  uint64
	Duration, Warmup      time.Duration
	Timeout, Drain        time.Duration
	Connections, Pipeline int
	Threads               int
	Priority              load.Priority

	ColdShare float64       // of scenario mixed
	PollEvery time.Duration // of scenarios that start runs
	BatchSize int           // of scenario batch

	SLO       []SLO
	ErrorsMax float64 // maximum share of requests that fail or get an unexpected answer
	// FindMax searches for the highest rate that meets SLO, starting with Rate.
	FindMax bool

	// PIDs returns the current processes of the server by name. Nil watches none.
	PIDs     func() map[string]int
	Command  string            // the command line, for the report
	Versions map[string]string // of servers, for the report
	// Live is called once a second.
	Live func(Progress)
}

// Progress is the content of a live view.
type Progress struct {
	load.Interval
	Phase    string
	Total    time.Duration
	Resident map[string]int64 // bytes held by the processes of the server
}

// Validate returns all faults of a Config as one error.
func (c *Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	scenario, err := FindScenario(c.Scenario)
	if err != nil {
		faults = append(faults, err)
	}
	fault(len(c.Keys) == 0, "give an API key with --key or --keys-file")
	for _, key := range c.Keys {
		fault(key == "" || strings.ContainsAny(key, " \t\r\n"), "a key is one word")
	}
	fault(scenario != nil && c.Universe.Len() == 0 && c.Scenario != "cold-start" && c.Scenario != "not-found",
		"give companies with --domains-file, or --domains and --seed")
	fault(c.ColdShare < 0 || c.ColdShare > 1, "cold share %g: 0 to 1", c.ColdShare)
	fault(c.PollEvery <= 0, "poll every %s: more than nothing", c.PollEvery)
	fault(c.BatchSize < 1 || c.BatchSize > fillBatch, "batch of %d: 1 to %d companies", c.BatchSize, fillBatch)
	fault(c.ErrorsMax < 0 || c.ErrorsMax > 1, "errors %g: a share, 0 to 1", c.ErrorsMax)
	fault(c.FindMax && len(c.SLO) == 0, "say with --slo what the highest rate is to keep")
	fault(c.FindMax && c.Rate <= 0, "say with --rate where the search begins")
	if scenario != nil {
		for _, slo := range c.SLO {
			op := slo.Class
			if i := strings.LastIndexByte(op, ' '); i >= 0 {
				op = op[:i]
			}
			known := slo.Class == ""
			for _, o := range scenario.ops {
				known = known || o.name == op
			}
			fault(!known, "slo class %q: scenario %s has %s, each with an outcome such as l1, redis or 404", slo.Class, scenario.Name,
				strings.Join(scenario.opNames(), ", "))
		}
	}
	return errors.Join(faults...)
}

// Run does a bench run and returns its report. A missed SLO or an invalid verdict is not
// an error.
func Run(ctx context.Context, cfg Config) (*report.Run, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	scenario, err := FindScenario(cfg.Scenario)
	if err != nil {
		return nil, err
	}
	r := &runner{cfg: cfg, scenario: scenario, client: newClient(&cfg, cfg.Universe)}
	if cfg.PIDs != nil {
		r.watcher = Watch(cfg.PIDs)
		defer r.watcher.Close()
	}
	env := Environment(cfg.Command, cfg.Versions)
	var filled *report.Fill
	if scenario.Name == "resident" {
		if filled, err = r.fill(ctx); err != nil {
			return nil, err
		}
	}
	var out *report.Run
	if cfg.FindMax {
		out, err = r.findMax(ctx)
	} else {
		out, err = r.once(ctx, cfg.Rate)
	}
	if err != nil {
		return nil, err
	}
	env.LoadAfter, env.Priority = LoadAverage(), out.Generator.Priority
	out.Environment, out.Fill = env, filled
	return out, nil
}

// runner sends the loads of one bench run.
type runner struct {
	cfg      Config
	scenario *Scenario
	client   *client
	watcher  *Watcher
}

// load returns the configuration that all loads of the bench run share.
func (r *runner) load(rate float64) load.Config {
	c := r.cfg
	return load.Config{
		Address: c.Address, Ops: r.scenario.opNames(), Rate: rate, Arrivals: c.Arrivals, Seed: c.Seed, Duration: c.Duration,
		Warmup: c.Warmup,
		Drain:  c.Drain, Timeout: c.Timeout, Connections: c.Connections, Pipeline: c.Pipeline, Loops: c.Threads, Priority: c.Priority,
		Headline: r.scenario.Headline[0],
		Source:   func(i, _ int) load.Source { return r.scenario.source(r.client, i) },
	}
}

func (r *runner) live(phase string, total time.Duration) func(load.Interval) {
	if r.cfg.Live == nil {
		return nil
	}
	return func(i load.Interval) {
		p := Progress{Interval: i, Phase: phase, Total: total}
		if r.cfg.PIDs != nil {
			p.Resident = make(map[string]int64)
			for name, pid := range r.cfg.PIDs() {
				p.Resident[name] = ResidentBytes(pid)
			}
		}
		r.cfg.Live(p)
	}
}

// once sends one load and returns its report with a verdict.
func (r *runner) once(ctx context.Context, rate float64) (*report.Run, error) {
	cfg := r.load(rate)
	cfg.OnInterval = r.live("", cfg.Warmup+cfg.Duration)
	started := time.Now()
	result, err := load.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	out := &report.Run{
		Schema: report.Schema, StartedAt: started.UTC(),
		Settings: report.Settings{
			Scenario: r.scenario.Name, Rate: rate, Seed: cfg.Seed, Duration: cfg.Duration.Seconds(), Warmup: cfg.Warmup.Seconds(),
			Connections: cfg.Connections, Pipeline: cfg.Pipeline, Threads: cfg.Loops, Keys: len(r.cfg.Keys), Universe: r.cfg.Universe.Len(),
		},
		SLO: []report.SLO{}, Classes: []report.Class{}, Intervals: []report.Interval{},
	}
	if rate > 0 {
		out.Settings.Arrivals = string(cfg.Arrivals)
	}
	switch r.scenario.Name {
	case "batch":
		out.Settings.BatchSize = r.cfg.BatchSize
	case "mixed":
		out.Settings.ColdShare = r.cfg.ColdShare
		fallthrough
	case "cold-start":
		out.Settings.PollEvery = r.cfg.PollEvery.Seconds()
		out.Jobs = r.client.jobs.report()
	}
	r.describe(out, result)
	if r.watcher != nil {
		begin := started.Add(cfg.Warmup)
		out.Server = r.watcher.report(begin, begin.Add(result.Elapsed), result.Answered)
	}
	unexpected := 0.0
	if result.Planned > 0 {
		unexpected = float64(out.Load.Unexpected) / float64(result.Planned)
	}
	out.SLO = append(out.SLO, checkSLOs(r.cfg.SLO, r.scenario.Headline, result, unexpected, r.cfg.ErrorsMax)...)
	out.Verdict = judge(r.evidence(out, result, rate))
	return out, nil
}

// describe writes the measurements into a report.
func (r *runner) describe(out *report.Run, result *load.Result) {
	seconds := result.Elapsed.Seconds()
	out.Load = report.Load{
		Elapsed: seconds, Planned: result.Planned, Sent: result.Sent, Answered: result.Answered,
		Achieved: float64(result.Answered) / seconds, Reconnects: result.Reconnects,
	}
	ofOp := make(map[string]int64)
	for _, c := range result.Classes {
		ofOp[c.Op] += c.Latency.TotalCount()
	}
	for _, op := range r.scenario.ops {
		for _, c := range result.Classes {
			if c.Op != op.name {
				continue
			}
			n := c.Latency.TotalCount()
			class := report.Class{
				Name: c.Key.String(), Op: c.Op, Outcome: c.Outcome, Expected: r.scenario.expects(c.Key), Count: n,
				Share:     float64(n) / float64(ofOp[c.Op]),
				PerSecond: float64(n) / seconds, Bytes: c.Bytes, Latency: report.QuantilesOf(c.Latency),
				Service: report.QuantilesOf(c.Service), Curve: report.CurveOf(c.Latency), Histogram: report.HistogramOf(c.Latency),
			}
			if !class.Expected {
				out.Load.Unexpected += n
			}
			out.Classes = append(out.Classes, class)
		}
	}
	for _, key := range r.scenario.Headline {
		if class := find(result, key.String(), nil); class != nil {
			out.Headline = append(out.Headline, key.String())
		}
	}
	if out.Headline == nil {
		out.Headline = []string{r.scenario.Headline[0].String()}
	}
	out.Generator = report.Generator{
		Pacing: report.QuantilesOf(result.Pacing), Waiting: report.QuantilesOf(result.Waiting), CPU: result.CPU.Seconds(),
		CPUShare: result.CPU.Seconds() / seconds / float64(result.Loops), Priority: string(result.Priority),
	}
	us := func(ns int64) float64 { return float64(ns) / 1000 }
	for _, i := range result.Intervals {
		out.Intervals = append(out.Intervals, report.Interval{
			At: i.At.Seconds(), Measured: i.Measured, Sent: i.Sent, Answered: i.Answered, Failed: i.Failed, Waiting: i.Waiting,
			Headline: i.Headline,
			P50:      us(i.P50), P99: us(i.P99), Max: us(i.Max), PacingP99: us(i.PacingP99),
		})
	}
}

// evidence collects the inputs of the verdict.
func (r *runner) evidence(out *report.Run, result *load.Result, rate float64) evidence {
	e := evidence{
		closed: rate == 0, pacingP99: time.Duration(result.Pacing.ValueAtPercentile(99)), slo: tightest(r.cfg.SLO),
		busy:  out.Generator.CPUShare,
		first: time.Duration(result.First.ValueAtPercentile(50)), last: time.Duration(result.Last.ValueAtPercentile(50)),
		achieved: 1, headlineNeeded: true,
	}
	for _, name := range out.Headline {
		if class := out.ClassNamed(name); class != nil {
			e.headline += class.Count
		}
	}
	var measured []report.Interval
	for _, i := range out.Intervals {
		if i.Measured {
			measured = append(measured, i)
		}
	}
	// A late answer counts in the second in which it arrives. With a growing queue,
	// fewer answers arrive than requests are due.
	if n := len(measured); n > 0 && rate > 0 {
		answered := int64(0)
		for _, i := range measured {
			answered += i.Answered + i.Failed
		}
		e.achieved = min(1, float64(answered)/(rate*float64(n)))
	}
	if third := len(measured) / 3; third > 0 && rate == 0 {
		for i := range third {
			e.firstRate += float64(measured[i].Answered) / float64(third)
			e.lastRate += float64(measured[len(measured)-1-i].Answered) / float64(third)
		}
	}
	if out.Server != nil {
		e.firstOthers, e.lastOthers, e.steal = out.Server.OtherFirst, out.Server.OtherLast, out.Server.Steal
	}
	return e
}

func (j *jobs) report() *report.Jobs {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &report.Jobs{Started: j.started, Complete: j.complete, Failed: j.failed, Unsettled: j.started - j.complete - j.failed,
		ToScore: report.QuantilesOf(j.toScore)}
}

// fillMax bounds the time to load the universe into memory.
const fillMax = 30 * time.Minute

// fill reads each company once, so that the server caches it.
func (r *runner) fill(ctx context.Context) (*report.Fill, error) {
	f := &report.Fill{Companies: int64(r.cfg.Universe.Len()), RSSBefore: r.resident()}
	found := &counter{}
	cfg := r.load(0)
	cfg.Ops, cfg.Headline = []string{"batch"}, load.Key{Op: "batch"}
	cfg.Warmup, cfg.Duration = 0, fillMax
	cfg.Connections = max(cfg.Loops, 4)
	cfg.Source = func(i, n int) load.Source {
		return &fill{client: r.client, at: i * fillBatch, step: n * fillBatch, found: found}
	}
	cfg.OnInterval = r.live("fill", 0)
	result, err := load.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, c := range result.Classes {
		if (load.Key{Op: "batch", Outcome: c.Outcome}) != c.Key || !r.fillExpects(c.Outcome) {
			return nil, fmt.Errorf("fill: %d calls of %d companies each ended with %s", c.Latency.TotalCount(), fillBatch, c.Outcome)
		}
	}
	f.Found, f.Seconds, f.RSSAfter = found.n, result.Elapsed.Seconds(), r.resident()
	return f, nil
}

func (r *runner) fillExpects(outcome string) bool {
	for _, origin := range origins {
		if outcome == origin {
			return true
		}
	}
	return false
}

func (r *runner) resident() map[string]int64 {
	held := make(map[string]int64)
	if r.cfg.PIDs != nil {
		for name, pid := range r.cfg.PIDs() {
			held[name] = ResidentBytes(pid)
		}
	}
	return held
}
