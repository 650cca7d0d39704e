package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"companyscore/internal/flush"
	"companyscore/internal/redis"
	"companyscore/scoring"
)

// Handler works on a group of runs and returns the outcome of each, in their order. It
// must return soon after ctx ends: at the runs' deadline, at shutdown, or when all runs
// of the group are lost. A run is lost if it was aborted or taken over by another
// worker; the handler should write no record for it. lost is safe for concurrent use. A
// handler may get the same run several times, with the same StartedAt.
type Handler func(ctx context.Context, runs []scoring.Run, lost func(i int) bool) []scoring.Outcome

// RunLog stores ended runs.
type RunLog interface {
	// WriteRuns stores ended runs. It may get the same run several times, with the same
	// content.
	WriteRuns(ctx context.Context, runs []scoring.Run) error
}

// ServerConfig configures a worker.
type ServerConfig struct {
	// Log receives every run that ends. It is required.
	Log RunLog
	// Progress returns the progress of an attempt at a run, zero if it is not known. Each heartbeat
	// stores it. Nil means that none is known.
	Progress func(runID string) scoring.Progress
	// Weights of the lanes. Nil means DefaultWeights.
	Weights Weights
	// Concurrency is the maximum number of runs in flight. A quarter is reserved for the
	// api lane. Zero means 16.
	Concurrency int
	// Group is the maximum number of runs per call of the handler. They are of one lane.
	// Zero means 1. It is at most a quarter of Concurrency.
	Group int
	// Lease is the time after which a worker without a heartbeat loses its runs. Zero
	// means 10 s. Takeover of a dead worker's runs takes up to Lease plus Sweep. Lease
	// must be the same in all workers: a longer one counts as expired.
	Lease time.Duration
	// Sweep is the interval of the search for expired leases. Zero means 2 s. It must be
	// the same in all workers.
	Sweep time.Duration
	// Grace is the time for runs to end at shutdown; then they are requeued. Zero means 5 s.
	Grace time.Duration
	// RetryDelay is the backoff after the first failed attempt; it doubles with each.
	// Zero means 1 s.
	RetryDelay time.Duration
}

func (c ServerConfig) withDefaults() (ServerConfig, error) {
	if c.Log == nil {
		return c, errors.New("configure worker: a run log is required")
	}
	if c.Concurrency < 0 || c.Group < 0 || c.Lease < 0 || c.Sweep < 0 || c.Grace < 0 || c.RetryDelay < 0 {
		return c, errors.New("configure worker: no number may be negative")
	}
	if c.Progress == nil {
		c.Progress = func(string) scoring.Progress { return scoring.Progress{} }
	}
	if c.Weights == nil {
		c.Weights = DefaultWeights()
	}
	if err := c.Weights.Validate(); err != nil {
		return c, fmt.Errorf("configure worker: %w", err)
	}
	whole := make(Weights)
	for _, lane := range scoring.Lanes {
		whole[lane] = c.Weights[lane]
	}
	c.Weights = whole
	if c.Concurrency == 0 {
		c.Concurrency = 16
	}
	c.Group = max(min(c.Group, c.Concurrency/4), 1)
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&c.Lease, 10 * time.Second}, {&c.Sweep, 2 * time.Second}, {&c.Grace, 5 * time.Second}, {&c.RetryDelay, time.Second}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	return c, nil
}

const (
	// pollInterval is the time between two claims while no run waits.
	pollInterval = 20 * time.Millisecond
	// groupInterval is the time to the next claim after one that found several runs, but
	// fewer than there was room for. Runs that arrive within it share a group.
	groupInterval = 300 * time.Millisecond
	// loneInterval is the time to the next claim after one that found a single run.
	loneInterval = 100 * time.Millisecond
	// claimMax is the maximum number of runs per claim.
	claimMax = 1000
	// releaseTimeout bounds the writes of a worker that shuts down.
	releaseTimeout = 3 * time.Second
)

// Server claims runs and passes them to a handler.
type Server struct {
	cfg   ServerConfig
	queue *Queue
	freed chan struct{} // receives when a group has ended

	mu       sync.Mutex
	groups   map[*group]struct{}
	inFlight map[scoring.Lane]int // runs of all groups
}

// NewServer returns a worker for the queue.
func NewServer(q *Queue, cfg ServerConfig) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, queue: q, freed: make(chan struct{}, 1), groups: make(map[*group]struct{}),
		inFlight: make(map[scoring.Lane]int)}, nil
}

// Run works on runs until ctx ends. Runs in flight may then continue for Grace; the rest
// is requeued for another worker. Run retries during outages of Redis. It may be called
// once.
func (s *Server) Run(ctx context.Context, handler Handler) error {
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(errShutdown)
	writes, stopWrites := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWrites()
	var background sync.WaitGroup
	background.Go(func() { every(writes, s.cfg.Lease/4, s.heartbeat) })
	background.Go(func() { every(writes, s.cfg.Sweep, s.sweep) })
	log := flush.Start(flush.Config{
		Interval: logInterval, Longest: longestLogWait, Timeout: logTimeout, Trouble: logTrouble, Logger: s.queue.cfg.Logger,
	}, s.writeLog)

	s.claimUntil(ctx.Done(), writes, func(g *group) {
		var groupCtx context.Context
		groupCtx, g.cancel = context.WithCancelCause(work)
		s.enlist(g)
		go s.process(groupCtx, writes, handler, g) // ends with the group; drain waits for it
	})
	unfinished := s.drain(stopWork)
	stopWrites()
	background.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := log.Close(last); err != nil {
		s.queue.cfg.Logger.Warn(logTrouble, "err", err)
	}
	if unfinished > 0 {
		return fmt.Errorf("shut down worker: %d runs did not stop; another worker will claim them", unfinished)
	}
	return nil
}

// claimUntil claims runs while there is room and passes them to begin in groups, until
// done is closed.
func (s *Server) claimUntil(done <-chan struct{}, ctx context.Context, begin func(*group)) {
	for {
		most, weights := s.room()
		var runs []scoring.Run
		var err error
		holder := uuid.NewString()
		if most > 0 {
			runs, err = s.claim(ctx, holder, most, weights)
		}
		wait := pollInterval
		switch {
		case err != nil:
			s.queue.cfg.Logger.Warn("runs could not be claimed", "err", err)
			wait = time.Second
		case len(runs) > 0 && len(runs) == most:
			wait = 0
		case len(runs) == 1:
			wait = loneInterval
		case len(runs) > 0:
			wait = groupInterval
		}
		for _, lane := range scoring.Lanes {
			own := slices.DeleteFunc(slices.Clone(runs), func(r scoring.Run) bool { return r.Lane != lane })
			for part := range slices.Chunk(own, s.cfg.Group) {
				begin(&group{holder: holder, lane: lane, runs: part, leased: time.Now(), isLost: make([]bool, len(part)), left: len(part)})
			}
		}
		var freed <-chan struct{}
		if len(weights) < len(s.cfg.Weights) { // some lanes have no room
			freed = s.freed
		}
		select {
		case <-done:
			return
		case <-time.After(wait):
		case <-freed:
		}
	}
}

// room returns the number of runs that may be claimed now, and the weights of the
// allowed lanes. Three quarters of Concurrency are for all lanes, in whole groups. The
// rest is for the api lane, so that a customer's call does not wait for bulk runs.
func (s *Server) room() (most int, weights Weights) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.cfg.Concurrency / 4
	shared := s.cfg.Concurrency - kept + min(s.inFlight[scoring.LaneAPI], kept)
	for _, n := range s.inFlight {
		shared -= n
	}
	if shared >= s.cfg.Group {
		return min(shared, claimMax), s.cfg.Weights
	}
	if s.cfg.Weights[scoring.LaneAPI] == 0 {
		return 0, nil
	}
	return min(max(kept-s.inFlight[scoring.LaneAPI], 0), claimMax), Weights{scoring.LaneAPI: 1}
}

// claim begins up to most runs of the lanes that have a weight.
func (s *Server) claim(ctx context.Context, holder string, most int, weights Weights) ([]scoring.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	lists := []string{redis.Retries()}
	for lane := range weights {
		lists = append(lists, redis.Lane(string(lane)))
	}
	// An idle worker checks this fifty times a second. It costs a tenth of the script.
	if n, err := s.queue.redis.Exists(ctx, lists...).Result(); n == 0 {
		return nil, err
	}
	longestPause := s.cfg.RetryDelay << s.queue.cfg.Attempts
	args := []any{holder, s.queue.cfg.Now().UnixMilli(), s.cfg.Lease.Milliseconds(), most, rand.Uint32(), longestPause.Milliseconds()}
	for _, lane := range scoring.Lanes {
		if weight, ok := weights[lane]; ok {
			args = append(args, string(lane), weight)
		}
	}
	reply, err := claimScript.Run(ctx, s.queue.redis, ScriptKeys(), args...).StringSlice()
	if err != nil {
		return nil, err
	}
	return decodeClaimed(reply)
}

// drain waits for groups to end for Grace, then stops them. It returns the number of
// runs that did not stop.
func (s *Server) drain(stopWork context.CancelCauseFunc) int {
	grace := time.After(s.cfg.Grace)
	var last <-chan time.Time
	for s.unfinished() > 0 {
		select {
		case <-s.freed:
		case <-grace:
			stopWork(errShutdown)
			last = time.After(handlerTimeout + releaseTimeout)
		case <-last:
			return s.unfinished()
		}
	}
	return 0
}

// unfinished returns the number of runs in flight.
func (s *Server) unfinished() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, n := range s.inFlight {
		total += n
	}
	return total
}

func (s *Server) enlist(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups[g] = struct{}{}
	s.inFlight[g.lane] += len(g.runs)
}

func (s *Server) delist(g *group) {
	s.mu.Lock()
	delete(s.groups, g)
	s.inFlight[g.lane] -= len(g.runs)
	s.mu.Unlock()
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// heartbeat extends the leases of the runs in flight and marks lost runs. It skips
// leases that were taken or extended a moment ago.
func (s *Server) heartbeat(ctx context.Context) {
	type member struct {
		group *group
		i     int
	}
	var members []member
	s.mu.Lock()
	for g := range s.groups {
		if time.Since(g.leased) < s.cfg.Lease/4 {
			continue
		}
		for i := range g.runs {
			members = append(members, member{g, i})
		}
	}
	s.mu.Unlock()
	began := time.Now()
	for page := range slices.Chunk(members, pageSize) {
		args := []any{s.cfg.Lease.Milliseconds()}
		for _, m := range page {
			run := m.group.runs[m.i]
			p := s.cfg.Progress(run.ID)
			args = append(args, run.ID, m.group.holder, p.Done, p.Total)
		}
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		stop, err := heartbeatScript.Run(callCtx, s.queue.redis, ScriptKeys(), args...).Int64Slice()
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				s.queue.cfg.Logger.Warn("leases of runs could not be extended", "err", err)
			}
			return
		}
		for _, place := range stop {
			page[place].group.lose(page[place].i)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range members {
		m.group.leased = began
	}
}

// sweep requeues the runs of dead workers. Several workers may sweep at the same time.
func (s *Server) sweep(ctx context.Context) {
	// Extend our own leases first, so that an outage longer than a lease loses no run.
	s.heartbeat(ctx)
	if err := s.reclaim(ctx); err != nil && ctx.Err() == nil {
		s.queue.cfg.Logger.Warn("runs of dead workers could not be requeued", "err", err)
	}
}

func (s *Server) reclaim(ctx context.Context) error {
	for {
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		reply, err := reclaimScript.Run(callCtx, s.queue.redis, ScriptKeys(),
			s.queue.cfg.Now().UnixMilli(), s.queue.cfg.Attempts, pageSize, s.cfg.Lease.Milliseconds()).StringSlice()
		cancel()
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(reply); i += 2 {
			if scoring.RunState(reply[i+1]) == scoring.RunFailed {
				s.queue.cfg.Logger.Error("run failed: its workers died", "run", reply[i])
			} else {
				s.queue.cfg.Logger.Warn("run taken over from a worker that died", "run", reply[i])
			}
		}
		if len(reply) < 2*pageSize {
			return nil
		}
	}
}

// every calls f once per interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f(ctx)
		}
	}
}
