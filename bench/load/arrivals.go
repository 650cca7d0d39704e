package load

import (
	"math/rand/v2"
	"time"
)

// schedule yields the instants at which requests of one loop are due, in nanoseconds
// since the start of the load. They do not depend on the server.
type schedule struct {
	gap    float64 // mean, in nanoseconds
	offset float64 // of the first, so that several loops take turns
	count  int64
	at     float64
	random *rand.Rand // nil: even gaps
}

// newSchedule returns the schedule of loop i of n. All n together send rate requests per
// second.
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
		// Multiply instead of adding up gaps, so that rounding errors do not accumulate.
		at := s.offset + float64(s.count)*s.gap
		s.count++
		return int64(at)
	}
	at := s.at
	s.at += s.random.ExpFloat64() * s.gap
	return int64(at)
}
