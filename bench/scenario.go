package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"companyscore/bench/load"
)

// Scenario is one kind of load.
type Scenario struct {
	Name string
	// About describes the requests in one line.
	About string
	// Headline lists the measured classes, most important first.
	Headline []load.Key
	// ops are the kinds of requests with their expected outcomes.
	ops    []operation
	source func(c *client, loop int) load.Source
}

type operation struct {
	name     string
	outcomes []string
}

// The outcomes of a 200, by its Server-Timing header.
var origins = []string{"l1", "redis", "clickhouse", "table", "sandbox", "none", "200"}

var scoreOp = operation{"score", origins}

// The kinds of requests of the scenarios that start runs.
const (
	opRead = iota
	opPost
	opPoll
	opScored
)

// The kinds of requests of conditional.
const (
	opTagged = iota // with a tag
	opFirst
)

// Scenarios lists all scenarios.
var Scenarios = []Scenario{
	{
		Name: "hot", About: "one company, from memory", Headline: []load.Key{{Op: "score", Outcome: "l1"}}, ops: []operation{scoreOp},
		source: func(c *client, loop int) load.Source { return &reads{client: c, pick: func() int { return 0 }} },
	},
	{
		Name: "zipf", About: "companies with a Zipf distribution (s = 1.1)", Headline: []load.Key{{Op: "score", Outcome: "l1"}},
		ops:    []operation{scoreOp},
		source: func(c *client, loop int) load.Source { return &reads{client: c, pick: c.zipf(loop)} },
	},
	{
		Name: "uniform-miss", About: "every company once in random order, none in memory",
		Headline: []load.Key{{Op: "score", Outcome: "clickhouse"}, {Op: "score", Outcome: "redis"}}, ops: []operation{scoreOp},
		source: func(c *client, loop int) load.Source { return &reads{client: c, pick: c.permuted(loop)} },
	},
	{
		Name: "not-found", About: "companies without a score", Headline: []load.Key{{Op: "score", Outcome: "404"}},
		ops:    []operation{{"score", []string{"404"}}},
		source: func(c *client, loop int) load.Source { return &unknown{client: c, random: c.random(loop)} },
	},
	{
		Name: "conditional", About: "with the ETag of the previous answer, after a first read without",
		Headline: []load.Key{{Op: "score", Outcome: "304"}},
		ops:      []operation{opTagged: {"score", append(slices.Clone(origins), "304")}, opFirst: {"first read", origins}},
		source: func(c *client, loop int) load.Source {
			return &conditional{client: c, pick: c.zipf(loop), tags: make(map[int][]byte)}
		},
	},
	{
		Name: "batch", About: "many companies in one call", Headline: []load.Key{{Op: "batch", Outcome: "l1"}},
		ops:    []operation{{"batch", origins}},
		source: func(c *client, loop int) load.Source { return &batches{client: c, pick: c.zipf(loop)} },
	},
	{
		Name: "history-paging", About: "all history pages of a company", Headline: []load.Key{{Op: "history", Outcome: "l1"},
			{Op: "history", Outcome: "clickhouse"}},
		ops:    []operation{{"history", origins}, {"next page", origins}},
		source: func(c *client, loop int) load.Source { return &history{client: c, pick: c.zipf(loop)} },
	},
	{
		Name: "signals", About: "all signals of one company, from memory", Headline: []load.Key{{Op: "signals", Outcome: "l1"}},
		ops: []operation{{"signals", origins}},
		source: func(c *client, loop int) load.Source {
			return &reads{client: c, pick: func() int { return 0 }, tail: "/signals"}
		},
	},
	{
		Name: "analytics", About: "distribution, movers and cohorts in turn", Headline: []load.Key{{Op: "distribution", Outcome: "table"},
			{Op: "movers", Outcome: "table"}, {Op: "cohort", Outcome: "l1"}},
		ops:    []operation{{"distribution", origins}, {"movers", origins}, {"cohort", origins}},
		source: func(c *client, loop int) load.Source { return &analytics{client: c, pick: c.zipf(loop)} },
	},
	{
		Name: "cold-start", About: "companies without a score: start a run, poll the job, read the score",
		Headline: []load.Key{{Op: "post", Outcome: "202"}},
		ops:      coldOps,
		source:   func(c *client, loop int) load.Source { return newCold(c, loop, 1) },
	},
	{
		Name: "mixed", About: "zipf, and a share of companies without a score", Headline: []load.Key{{Op: "score", Outcome: "l1"}},
		ops:    coldOps,
		source: func(c *client, loop int) load.Source { return newCold(c, loop, c.cfg.ColdShare) },
	},
	{
		Name: "resident", About: "load all companies with batch calls, then read random ones",
		Headline: []load.Key{{Op: "score", Outcome: "l1"}}, ops: []operation{scoreOp},
		source: func(c *client, loop int) load.Source { return &reads{client: c, pick: c.uniform(loop)} },
	},
	{
		Name: "null", About: "an own server that does nothing, for the maximum of the generator",
		Headline: []load.Key{{Op: "score", Outcome: "l1"}}, ops: []operation{scoreOp},
		source: func(c *client, loop int) load.Source { return &reads{client: c, pick: func() int { return 0 }} },
	},
}

var coldOps = []operation{
	opRead: scoreOp, opPost: {"post", append(slices.Clone(origins), "202")}, opPoll: {"poll", origins},
	opScored: {"score after job", origins},
}

// FindScenario returns a scenario by its name.
func FindScenario(name string) (*Scenario, error) {
	var names []string
	for i := range Scenarios {
		if Scenarios[i].Name == name {
			return &Scenarios[i], nil
		}
		names = append(names, Scenarios[i].Name)
	}
	return nil, fmt.Errorf("unknown scenario %q: use one of %v", name, names)
}

func (s *Scenario) opNames() []string {
	names := make([]string, len(s.ops))
	for i, op := range s.ops {
		names[i] = op.name
	}
	return names
}

// expects reports whether the scenario expects a class.
func (s *Scenario) expects(k load.Key) bool {
	return slices.ContainsFunc(s.ops, func(op operation) bool { return op.name == k.Op && slices.Contains(op.outcomes, k.Outcome) })
}

// client builds requests. All loops share it. It is constant but for jobs.
type client struct {
	cfg      *Config
	universe *Universe
	tails    [][]byte // request bytes after the target, per key
	runID    string   // part of domains without a score
	jobs     *jobs
}

func newClient(cfg *Config, universe *Universe) *client {
	c := &client{cfg: cfg, universe: universe, runID: strconv.FormatInt(time.Now().UnixMilli(), 36),
		jobs: &jobs{toScore: load.NewHistogram()}}
	for _, key := range cfg.Keys {
		c.tails = append(c.tails, fmt.Appendf(nil, " HTTP/1.1\r\nHost: %s\r\nX-API-Key: %s\r\n", cfg.Address, key))
	}
	return c
}

func (c *client) random(loop int) *rand.Rand {
	return rand.New(rand.NewPCG(c.cfg.Seed, 1+uint64(loop)))
}

// zipf returns a generator of company indexes with a Zipf distribution.
func (c *client) zipf(loop int) func() int {
	z := rand.NewZipf(c.random(loop), 1.1, 1, uint64(c.universe.Len()-1))
	return func() int { return int(z.Uint64()) }
}

func (c *client) uniform(loop int) func() int {
	random, n := c.random(loop), c.universe.Len()
	return func() int { return random.IntN(n) }
}

// permuted returns a generator of all company indexes in random order. Each loop gets
// its share of them.
func (c *client) permuted(loop int) func() int {
	n, loops := c.universe.Len(), max(c.cfg.Threads, 1)
	random := rand.New(rand.NewPCG(c.cfg.Seed, 0)) // the same for all loops
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	random.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	at := loop % n
	return func() int {
		i := int(order[at])
		at = (at + loops) % n
		return i
	}
}

// turn counts requests, for a round robin of keys.
type turn struct{ n int }

// tail returns the bytes after the target of the next request.
func (t *turn) tail(c *client) []byte {
	t.n++
	return c.tails[t.key(c)]
}

// key returns the index of the key of the last request.
func (t *turn) key(c *client) int { return t.n % len(c.tails) }

const endOfHead = "\r\n"

// get appends a request for the path before + domain + after.
func (t *turn) get(c *client, dst []byte, before string, domain []byte, after string) []byte {
	return get(dst, before, domain, after, t.tail(c))
}

func get(dst []byte, before string, domain []byte, after string, tail []byte) []byte {
	dst = append(dst, "GET "...)
	dst = append(dst, before...)
	dst = append(dst, domain...)
	dst = append(dst, after...)
	dst = append(dst, tail...)
	return append(dst, endOfHead...)
}

// post appends a request with a body.
func (t *turn) post(c *client, dst []byte, path string, body []byte) []byte {
	dst = append(dst, "POST "...)
	dst = append(dst, path...)
	dst = append(dst, t.tail(c)...)
	dst = append(dst, "Content-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}

// single is part of sources without follow-up requests.
type single struct{ turn }

func (single) Answered(load.Request, load.Answer) (time.Duration, bool) { return 0, false }
func (single) Resume(dst []byte, r load.Request) ([]byte, load.Request) { return dst, r }

// reads reads scores.
type reads struct {
	single
	client *client
	pick   func() int
	tail   string // of the path
}

func (s *reads) Next(dst []byte) ([]byte, load.Request, bool) {
	return s.get(s.client, dst, "/v1/score/", s.client.universe.Domain(s.pick()), s.tail), load.Request{}, true
}

// unknownNames is the number of companies without a score.
const unknownNames = 10_000

// unknown reads companies without a score.
type unknown struct {
	single
	client *client
	random *rand.Rand
	name   []byte
}

func (s *unknown) Next(dst []byte) ([]byte, load.Request, bool) {
	s.name = append(s.name[:0], "never-scored-"...)
	s.name = strconv.AppendInt(s.name, int64(s.random.IntN(unknownNames)), 10)
	s.name = append(s.name, ".com"...)
	return s.get(s.client, dst, "/v1/score/", s.name, ""), load.Request{}, true
}

// conditional reads scores with the ETag of the previous answer.
type conditional struct {
	turn
	client *client
	pick   func() int
	tags   map[int][]byte
}

func (s *conditional) Next(dst []byte) ([]byte, load.Request, bool) {
	i := s.pick()
	tag, ok := s.tags[i]
	dst = s.get(s.client, dst, "/v1/score/", s.client.universe.Domain(i), "")
	if !ok {
		return dst, load.Request{Op: opFirst, Watch: true, Slot: uint64(i)}, true
	}
	dst = append(dst[:len(dst)-len(endOfHead)], "If-None-Match: "...)
	dst = append(dst, tag...)
	dst = append(dst, "\r\n\r\n"...)
	return dst, load.Request{Op: opTagged, Watch: true, Slot: uint64(i)}, true
}

func (s *conditional) Answered(r load.Request, a load.Answer) (time.Duration, bool) {
	if a.Status == 200 && len(a.ETag) > 0 {
		s.tags[int(r.Slot)] = append(s.tags[int(r.Slot)][:0], a.ETag...)
	}
	return 0, false
}

func (*conditional) Resume(dst []byte, r load.Request) ([]byte, load.Request) { return dst, r }

// batches sends batch calls.
type batches struct {
	single
	client *client
	pick   func() int
	body   []byte
}

func (s *batches) Next(dst []byte) ([]byte, load.Request, bool) {
	s.body = batchBody(s.body[:0], s.client.cfg.BatchSize, func(int) []byte { return s.client.universe.Domain(s.pick()) })
	return s.post(s.client, dst, "/v1/scores/batch", s.body), load.Request{}, true
}

func batchBody(dst []byte, n int, domain func(i int) []byte) []byte {
	dst = append(dst, `{"domains":[`...)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, domain(i)...) // canonical names need no escapes
		dst = append(dst, '"')
	}
	return append(dst, "]}"...)
}

// history reads all history pages of a company.
type history struct {
	turn
	client *client
	pick   func() int
	next   slots[page]
}

type page struct {
	company int
	cursor  []byte
}

const historyLimit = "/history?limit=50"

func (s *history) Next(dst []byte) ([]byte, load.Request, bool) {
	slot := s.next.take()
	s.next.at(slot).company = s.pick()
	return s.get(s.client, dst, "/v1/score/", s.client.universe.Domain(s.next.at(slot).company), historyLimit),
		load.Request{Op: 0, Watch: true, Slot: slot}, true
}

func (s *history) Answered(r load.Request, a load.Answer) (time.Duration, bool) {
	cursor := field(a.Body, "next_cursor")
	if a.Status != 200 || len(cursor) == 0 {
		s.next.give(r.Slot)
		return 0, false
	}
	p := s.next.at(r.Slot)
	p.cursor = append(p.cursor[:0], cursor...)
	return 0, true
}

func (s *history) Resume(dst []byte, r load.Request) ([]byte, load.Request) {
	p := s.next.at(r.Slot)
	r.Op = 1
	return s.get(s.client, dst, "/v1/score/", s.client.universe.Domain(p.company), historyLimit+"&cursor="+string(p.cursor)), r
}

// analytics reads distribution, movers and cohorts in turn.
type analytics struct {
	single
	client *client
	pick   func() int
	count  int
}

var windows = []string{"7d", "30d", "90d"}

func (s *analytics) Next(dst []byte) ([]byte, load.Request, bool) {
	s.count++
	switch s.count % 3 {
	case 0:
		return s.get(s.client, dst, "/v1/distribution", nil, ""), load.Request{Op: 0}, true
	case 1:
		return s.get(s.client, dst, "/v1/movers?window=", nil, windows[s.count/3%3]), load.Request{Op: 1}, true
	}
	return s.get(s.client, dst, "/v1/company/", s.client.universe.Domain(s.pick()), "/cohort"), load.Request{Op: 2}, true
}

// fill reads all companies once with batch calls.
type fill struct {
	turn
	client *client
	at     int
	step   int // companies of all loops in one round
	body   []byte
	found  *counter
}

// fillBatch is the number of companies per call of fill.
const fillBatch = 1000

func (s *fill) Next(dst []byte) ([]byte, load.Request, bool) {
	n := min(fillBatch, s.client.universe.Len()-s.at)
	if n <= 0 {
		return dst, load.Request{}, false
	}
	s.body = batchBody(s.body[:0], n, func(i int) []byte { return s.client.universe.Domain(s.at + i) })
	s.at += s.step
	return s.post(s.client, dst, "/v1/scores/batch", s.body), load.Request{Watch: true}, true
}

func (s *fill) Answered(_ load.Request, a load.Answer) (time.Duration, bool) {
	if a.Status == 200 {
		s.found.add(int64(bytes.Count(a.Body, []byte(`"status":200`))))
	}
	return 0, false
}

func (*fill) Resume(dst []byte, r load.Request) ([]byte, load.Request) { return dst, r }

type counter struct {
	mu sync.Mutex
	n  int64
}

func (c *counter) add(n int64) {
	c.mu.Lock()
	c.n += n
	c.mu.Unlock()
}

// jobs counts the started runs of all loops.
type jobs struct {
	mu                        sync.Mutex
	started, complete, failed int64
	serial                    int64
	toScore                   *hdrhistogram.Histogram
}

// pollMax bounds the polling of a job.
const pollMax = 180 * time.Second

// cold reads scores. For a share of requests it starts a run, polls the job and reads the score.
type cold struct {
	turn
	client *client
	share  float64
	random *rand.Rand
	pick   func() int
	runs   slots[coldRun]
	body   []byte
}

type coldRun struct {
	key    int // the key that started the run polls the job
	domain []byte
	job    []byte
	began  time.Time
}

func newCold(c *client, loop int, share float64) *cold {
	s := &cold{client: c, share: share, random: rand.New(rand.NewPCG(c.cfg.Seed, uint64(1000+loop))), pick: func() int { return 0 }}
	if c.universe.Len() > 0 {
		s.pick = c.zipf(loop)
	}
	return s
}

func (s *cold) Next(dst []byte) ([]byte, load.Request, bool) {
	if s.share < 1 && s.random.Float64() >= s.share {
		return s.get(s.client, dst, "/v1/score/", s.client.universe.Domain(s.pick()), ""), load.Request{Op: opRead}, true
	}
	slot := s.runs.take()
	run := s.runs.at(slot)
	run.began = time.Now()
	s.client.jobs.mu.Lock()
	s.client.jobs.serial++
	serial := s.client.jobs.serial
	s.client.jobs.mu.Unlock()
	run.domain = fmt.Appendf(run.domain[:0], "cold-%s-%d.com", s.client.runID, serial)
	s.body = fmt.Appendf(s.body[:0], `{"domain":%q}`, run.domain)
	dst = s.post(s.client, dst, "/v1/score", s.body)
	run.key = s.key(s.client)
	return dst, load.Request{Op: opPost, Watch: true, Slot: slot}, true
}

func (s *cold) Answered(r load.Request, a load.Answer) (time.Duration, bool) {
	run, jobs := s.runs.at(r.Slot), s.client.jobs
	switch {
	case r.Op == opPost && a.Status == 202:
		run.job = append(run.job[:0], field(a.Body, "job_id")...)
		jobs.mu.Lock()
		jobs.started++
		jobs.mu.Unlock()
		return s.client.cfg.PollEvery, true
	case r.Op == opPoll && a.Status == 200:
		switch string(field(a.Body, "status")) {
		case "pending":
			if time.Since(run.began) < pollMax {
				return s.client.cfg.PollEvery, true
			}
		case "complete":
			jobs.mu.Lock()
			jobs.complete++
			_ = jobs.toScore.RecordValue(min(int64(time.Since(run.began)), jobs.toScore.HighestTrackableValue()))
			jobs.mu.Unlock()
			run.job = run.job[:0]
			return 0, true
		case "failed":
			jobs.mu.Lock()
			jobs.failed++
			jobs.mu.Unlock()
		}
	}
	s.runs.give(r.Slot)
	return 0, false
}

func (s *cold) Resume(dst []byte, r load.Request) ([]byte, load.Request) {
	run := s.runs.at(r.Slot)
	tail := s.client.tails[run.key]
	if len(run.job) == 0 {
		r.Op = opScored
		return get(dst, "/v1/score/", run.domain, "", tail), r
	}
	r.Op = opPoll
	return get(dst, "/v1/jobs/", run.job, "", tail), r
}

// field returns a string of a JSON object, nil if there is none or if it has escapes.
func field(body []byte, name string) []byte {
	_, rest, found := bytes.Cut(body, append(append([]byte{'"'}, name...), `":"`...))
	if !found {
		return nil
	}
	text, _, found := bytes.Cut(rest, []byte{'"'})
	if !found || bytes.IndexByte(text, '\\') >= 0 {
		return nil
	}
	return text
}

// slots stores the state of requests with follow-up requests. Free slots are reused.
type slots[T any] struct {
	all  []*T
	free []uint64
}

func (s *slots[T]) take() uint64 {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.all = append(s.all, new(T))
	return uint64(len(s.all) - 1)
}

func (s *slots[T]) at(slot uint64) *T { return s.all[slot] }

func (s *slots[T]) give(slot uint64) { s.free = append(s.free, slot) }
