package load

import (
	"math"
	"slices"
	"testing"
	"testing/quick"
	"time"
)

func TestConstantArrivalsDoNotDrift(t *testing.T) {
	t.Parallel()
	s := newSchedule(3000, Constant, 1, 0, 1)
	for i := range 3_000_000 {
		want := float64(i) * float64(time.Second) / 3000
		if got := s.next(); math.Abs(float64(got)-want) > 1 {
			t.Fatalf("request %d is due at %d ns, want %.0f", i, got, want)
		}
	}
}

// Several loops that share a rate must have the same due times as one loop.
func TestLoopsShareConstantArrivals(t *testing.T) {
	t.Parallel()
	for _, loops := range []int{2, 3, 7} {
		var shared, alone []int64
		for i := range loops {
			s := newSchedule(1000, Constant, 1, i, loops)
			for range 100 {
				shared = append(shared, s.next())
			}
		}
		s := newSchedule(1000, Constant, 1, 0, 1)
		for range 100 * loops {
			alone = append(alone, s.next())
		}
		slices.Sort(shared)
		for i := range shared {
			if d := shared[i] - alone[i]; d < -1 || d > 1 {
				t.Fatalf("%d loops: request %d is due at %d, alone at %d", loops, i, shared[i], alone[i])
			}
		}
	}
}

func TestPoissonArrivalsHaveRateAndVariance(t *testing.T) {
	t.Parallel()
	const n, rate = 200_000, 5000.0
	s := newSchedule(rate, Poisson, 42, 0, 1)
	var sum, squares float64
	last := int64(0)
	for range n {
		at := s.next()
		gap := float64(at-last) / float64(time.Second) * rate // 1 on average
		last = at
		sum, squares = sum+gap, squares+gap*gap
	}
	mean := sum / n
	variance := squares/n - mean*mean
	// The standard error of the mean is 1/sqrt(n) = 0.0022, of the variance 2/sqrt(n).
	if math.Abs(mean-1) > 0.01 || math.Abs(variance-1) > 0.03 {
		t.Errorf("gaps have the mean %.4f and the variance %.4f, want 1 and 1", mean, variance)
	}
}

func TestArrivalsRiseAndRepeatWithSeed(t *testing.T) {
	t.Parallel()
	property := func(seed uint64, rate uint16, poisson bool) bool {
		arrivals := Constant
		if poisson {
			arrivals = Poisson
		}
		a, b := newSchedule(float64(rate)+1, arrivals, seed, 0, 1), newSchedule(float64(rate)+1, arrivals, seed, 0, 1)
		last := int64(0)
		for range 100 {
			at := a.next()
			if at < last || at != b.next() {
				return false
			}
			last = at
		}
		return true
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}
