package load

import (
	"math/rand/v2"
	"time"
)

// schedule yields the instants at which one loop is to send, in nanoseconds since
// the start of the load. They do not depend on what the server does.
type schedule struct {
	gap    float64 // mean, in nanoseconds
	offset float64 // of the first, so that several loops take turns
	count  int64
	at     float64
	random *rand.Rand // nil: even gaps
}

// newSchedule returns the instants of loop i of n, which together send rate requests a second.
func newSchedule(rate float64, arrivals Arrivals, seed uint64, i, n int) *schedule {
	gap := float64(time.Second) / rate
	s := &schedule{gap: gap * float64(n), offset: gap * float64(i)}
	if arrivals == Poisson {
		s.random = rand.New(rand.NewPCG(seed, uint64(i)))
		s.at = s.random.ExpFloat64() * s.gap
	}
	return s
}

// next returns the next instant.
func (s *schedule) next() int64 {
	if s.random == nil {
		// Multiplied, not added up, so that nothing drifts.
		at := s.offset + float64(s.count)*s.gap
		s.count++
		return int64(at)
	}
	at := s.at
	s.at += s.random.ExpFloat64() * s.gap
	return int64(at)
}
