// Package peer compares the hot read with other servers that send the same bytes. All peers
// are measured in one run, in turns, so that changes of the machine affect all of them.
package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"companyscore/bench"
	"companyscore/bench/load"
	"companyscore/bench/report"
)

// Answer is the answer of the service. All peers send it.
type Answer struct {
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

// answerMaxBytes bounds the body of an answer.
const answerMaxBytes = 64 << 10

// Fetch reads an answer of the service, without the headers that every server sets itself.
func Fetch(ctx context.Context, url, key string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Accept-Encoding", "identity")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("fetch the answer: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, answerMaxBytes))
	if err != nil {
		return Answer{}, fmt.Errorf("fetch the answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return Answer{}, fmt.Errorf("fetch the answer: %s: %s", res.Status, body)
	}
	a := Answer{Header: make(map[string]string), Body: string(body)}
	for name := range res.Header {
		if name != "Date" && name != "Content-Length" && name != "Server" && name != "Connection" {
			a.Header[name] = res.Header.Get(name)
		}
	}
	return a, nil
}

// ReadAnswer reads an answer from a JSON file.
func ReadAnswer(path string) (Answer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	if err := json.Unmarshal(text, &a); err != nil {
		return Answer{}, fmt.Errorf("read answer %s: %w", path, err)
	}
	return a, nil
}

// Peer is one measured server.
type Peer struct {
	Name    string
	Address string // host:port
	Target  string // path and query of the request
	Header  map[string]string
	// Serving are the processes whose CPU time counts per answer. Besides are other
	// processes of the peer.
	Serving, Besides []int
}

// Names of peers that targets refer to.
const (
	Ours       = "companyscore, hot GET"
	BareFiber  = "bare Fiber"
	ProxyCache = "nginx proxy_cache"
	OpenCache  = "nginx proxy_cache, files kept open"
)

// Config describes a comparison.
type Config struct {
	Peers       []Peer
	Skipped     []string // peers that are not available, with the reason
	Rounds      int
	Each        time.Duration // duration per peer and round; a tenth of it is added as warm-up
	Connections int
	Processors  []int // of the generator; nil pins nothing
	Seed        uint64
	Progress    func(round int, name string)
}

// Result is the result of a comparison. The first peer is the service.
type Result struct {
	StartedAt   time.Time          `json:"started_at"`
	Rounds      int                `json:"rounds"`
	Each        float64            `json:"each_s"`
	Connections int                `json:"connections"`
	Apart       bool               `json:"apart"` // servers and generator were pinned to different processors
	Peers       []Measured         `json:"peers"`
	Skipped     []string           `json:"skipped"`
	Targets     []Target           `json:"targets"`
	Environment report.Environment `json:"environment"`
}

// Measured has the figures of one peer. Ratios compare the service with the peer per round.
// Above 1 the service has a higher rate, or uses less CPU time per answer.
type Measured struct {
	Name       string    `json:"name"`
	PerSecond  []float64 `json:"per_s"`
	CPU        []float64 `json:"cpu_us"`     // per answer, of the serving processes
	AllCPU     []float64 `json:"all_cpu_us"` // the same with other processes of the peer
	Client     []float64 `json:"client_share"`
	Throughput Spread    `json:"throughput_ratio"`
	Cost       Spread    `json:"cpu_ratio"`
}

// Spread is the median, minimum and maximum of the rounds.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Target is a ratio that the service must reach.
type Target struct {
	What  string  `json:"what"`
	Ratio float64 `json:"ratio"`
	Least float64 `json:"least"`
	Met   bool    `json:"met"`
}

// The targets of the service.
const (
	leastOfBareFiber  = 0.90
	leastOfProxyCache = 1.10
)

// Run measures all peers in turns. The order differs per round.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if len(cfg.Peers) == 0 || cfg.Rounds < 1 || cfg.Each <= 0 {
		return nil, errors.New("a comparison needs peers, rounds and a duration")
	}
	r := &Result{
		StartedAt: time.Now().UTC(), Rounds: cfg.Rounds, Each: cfg.Each.Seconds(), Connections: cfg.Connections,
		Apart: len(cfg.Processors) > 0, Skipped: append([]string{}, cfg.Skipped...),
		Peers: make([]Measured, len(cfg.Peers)),
	}
	for round := range cfg.Rounds {
		for turn := range cfg.Peers {
			i := (turn + round) % len(cfg.Peers)
			p := cfg.Peers[i]
			if cfg.Progress != nil {
				cfg.Progress(round+1, p.Name)
			}
			if err := r.Peers[i].measure(ctx, cfg, p); err != nil {
				return nil, fmt.Errorf("measure %s: %w", p.Name, err)
			}
		}
	}
	r.conclude()
	return r, nil
}

// repeat is a source that repeats one request.
type repeat []byte

func (s repeat) Next(dst []byte) ([]byte, load.Request, bool) {
	return append(dst, s...), load.Request{}, true
}
func (repeat) Answered(load.Request, load.Answer) (time.Duration, bool) { return 0, false }
func (repeat) Resume(dst []byte, r load.Request) ([]byte, load.Request) { return dst, r }

const (
	// eachMax bounds the time in which a peer must begin a measured request.
	eachMax = time.Minute
	// requestTimeout bounds one request. It is long, since a failed request fails the comparison.
	requestTimeout = time.Minute
)

// measure adds a round to m. It measures again, for twice as long, while no request is due in the
// measured time.
func (m *Measured) measure(ctx context.Context, cfg Config, p Peer) error {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n", p.Target, p.Address)
	names := make([]string, 0, len(p.Header))
	for name := range p.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		request = fmt.Appendf(request, "%s: %s\r\n", name, p.Header[name])
	}
	request = append(request, "\r\n"...)
	var result *load.Result
	var used, usedBeside time.Duration
	// A generator or server that gets no processor time within each makes no measurement. The next one is longer.
	for each := cfg.Each; result == nil || result.Planned == 0 && each <= eachMax; each *= 2 {
		before, beside := bench.CPU(p.Serving...), bench.CPU(p.Besides...)
		var err error
		result, err = load.Run(ctx, load.Config{
			Address: p.Address, Ops: []string{"get"}, Duration: each, Warmup: each / 10, Connections: cfg.Connections,
			Processors: cfg.Processors, Seed: cfg.Seed,
			Timeout: requestTimeout, Source: func(int, int) load.Source { return repeat(request) },
		})
		if err != nil {
			return err
		}
		used, usedBeside = bench.CPU(p.Serving...)-before, bench.CPU(p.Besides...)-beside
	}
	answered := int64(0) // includes the warm-up, as does the CPU time
	for _, i := range result.Intervals {
		answered += i.Answered
	}
	for _, c := range result.Classes {
		if _, numeric := strconv.Atoi(c.Outcome); c.Failed() || numeric == nil && c.Outcome != "200" {
			return fmt.Errorf("%d requests ended with %s", c.Latency.TotalCount(), c.Outcome)
		}
	}
	if answered == 0 || result.Answered == 0 {
		return errors.New("no answers")
	}
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(answered) }
	m.Name = p.Name
	m.PerSecond = append(m.PerSecond, float64(result.Answered)/result.Elapsed.Seconds())
	m.CPU = append(m.CPU, each(used))
	m.AllCPU = append(m.AllCPU, each(used+usedBeside))
	m.Client = append(m.Client, result.CPU.Seconds()/result.Elapsed.Seconds())
	return nil
}

// conclude compares the first peer with all others.
func (r *Result) conclude() {
	ours := r.Peers[0]
	for i := range r.Peers {
		p := &r.Peers[i]
		p.Throughput = spread(ours.PerSecond, p.PerSecond)
		p.Cost = spread(p.CPU, ours.CPU)
	}
	r.Targets = []Target{}
	target := func(name, by string, ratio func(Measured) Spread, least float64) {
		for _, p := range r.Peers {
			if p.Name == name {
				got := ratio(p).Median
				r.Targets = append(r.Targets, Target{What: fmt.Sprintf("%s to %s, by %s", ours.Name, name, by), Ratio: got, Least: least,
					Met: got >= least})
			}
		}
	}
	target(BareFiber, "throughput", func(m Measured) Spread { return m.Throughput }, leastOfBareFiber)
	target(BareFiber, "server CPU for each answer", func(m Measured) Spread { return m.Cost }, leastOfBareFiber)
	target(ProxyCache, "throughput", func(m Measured) Spread { return m.Throughput }, leastOfProxyCache)
	target(ProxyCache, "server CPU for each answer", func(m Measured) Spread { return m.Cost }, leastOfProxyCache)
}

// spread returns the spread of the ratios of two lists.
func spread(a, b []float64) Spread {
	ratios := make([]float64, len(a))
	for i := range a {
		if b[i] > 0 {
			ratios[i] = a[i] / b[i]
		}
	}
	return Spread{Median: median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios)}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// Met reports whether every target was met.
func (r *Result) Met() bool {
	return !slices.ContainsFunc(r.Targets, func(t Target) bool { return !t.Met })
}

// JSON writes the result as JSON.
func (r *Result) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(r)
}

// Text writes the result as text.
func (r *Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	where := "all on the same processors"
	if r.Apart {
		where = "one processor for the servers, another for the generator"
	}
	fmt.Fprintf(w, "%d rounds of %g s each, %d connections, closed loop; %s\nmedians, and lowest to highest of the rounds\n\n", r.Rounds,
		r.Each, r.Connections, where)
	fmt.Fprintln(w, "\tanswers/s\t\tCPU of its server\twith all beside\tgenerator\twe to it, answers\t\twe to it, CPU\t\t")
	for _, p := range r.Peers {
		fmt.Fprintf(w, "%s\t%s\t%s - %s\t%s\t%s\t%s\t%.2f\t%.2f - %.2f\t%.2f\t%.2f - %.2f\t\n", p.Name, report.Count(median(p.PerSecond)),
			report.Count(slices.Min(p.PerSecond)),
			report.Count(slices.Max(p.PerSecond)), report.Duration(median(p.CPU)), report.Duration(median(p.AllCPU)),
			report.Percent(median(p.Client)),
			p.Throughput.Median, p.Throughput.Low, p.Throughput.High, p.Cost.Median, p.Cost.Low, p.Cost.High)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, skipped := range r.Skipped {
		fmt.Fprintln(out, "left out:", skipped)
	}
	for _, t := range r.Targets {
		verdict := "met"
		if !t.Met {
			verdict = "MISSED"
		}
		fmt.Fprintf(out, "%s: %.2f, at least %.2f: %s\n", t.What, t.Ratio, t.Least, verdict)
	}
	e := r.Environment
	_, err := fmt.Fprintf(out, "\n%s, %d cores, Linux %s, %s, commit %s, load average %s before, %s after\n"+
		"the processors by themselves, before: %s\n",
		e.CPU, e.Cores, e.Kernel, e.Go, e.Commit, e.LoadBefore, e.LoadAfter, e.Stops)
	return err
}
