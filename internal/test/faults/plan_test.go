package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// fault is one fault of a plan.
type fault struct {
	pause  time.Duration // since the fault before it was over
	kind   string        // kill or freeze
	victim string        // up, or a child by its name in the runtime file
	length time.Duration // of a freeze
}

func (f fault) String() string {
	text := fmt.Sprintf("%-6s %-12s", f.kind, f.victim)
	if f.kind == freeze {
		text += fmt.Sprintf(" for %.1f s", f.length.Seconds())
	}
	return strings.TrimSpace(text)
}

const (
	kill   = "kill"
	freeze = "freeze"
)

// kinds are the faults that each round of a plan has once.
var kinds = []fault{
	{kind: kill, victim: "up"}, {kind: kill, victim: "redis-server"}, {kind: kill, victim: "clickhouse"}, {kind: kill, victim: "worker"},
	{kind: kill, victim: "batch"},
	{kind: freeze, victim: "redis-server"}, {kind: freeze, victim: "clickhouse"},
}

const (
	roundLength = 50 * time.Second
	roundsLeast = 2
	// A store that is silent for over 5 s makes calls to it fail: half of the freezes
	// are longer than that, from the second round on.
	shortFreezeMax, longFreezeMin, longFreezeMax = 3 * time.Second, 5500 * time.Millisecond, 8 * time.Second
	// restartGuess is what the kill of `up` takes of the time of a plan.
	restartGuess = time.Second
)

// newPlan returns the faults for a load of a length. Equal arguments give equal plans.
func newPlan(seed uint64, length time.Duration) (plan []fault) {
	random := rand.New(rand.NewPCG(seed, 1))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Float64()*float64(most-least))
	}
	rest := length
	for round := range max(roundsLeast, int(length/roundLength)) {
		faults := slices.Clone(kinds)
		random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			switch {
			case f.victim == "up":
				rest -= restartGuess
			case f.kind == freeze && round > 0 && random.IntN(2) == 0:
				f.length = between(longFreezeMin, longFreezeMax)
			case f.kind == freeze:
				f.length = between(100*time.Millisecond, shortFreezeMax)
			}
			rest -= f.length
			plan = append(plan, f)
		}
	}
	// The pauses fill the rest. A third of them is short, so that a fault meets the
	// recovery from the one before.
	weights := make([]float64, len(plan))
	var sum float64
	for i := range weights {
		weights[i] = 0.5 + random.Float64()
		if random.IntN(3) == 0 {
			weights[i] /= 10
		}
		sum += weights[i]
	}
	for i := range plan {
		plan[i].pause = time.Duration(float64(max(rest, 0)) * weights[i] / sum)
	}
	return plan
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		for _, length := range []time.Duration{25 * time.Second, time.Minute, 5 * time.Minute, time.Hour} {
			plan := newPlan(seed, length)
			if again := newPlan(seed, length); !slices.Equal(plan, again) {
				t.Fatalf("seed %d has two plans", seed)
			}
			count := make(map[fault]int)
			var takes time.Duration
			for _, f := range plan {
				count[fault{kind: f.kind, victim: f.victim}]++
				takes += f.pause + f.length
				if f.pause < 0 || f.length > longFreezeMax || (f.kind == freeze) != (f.length > 0) {
					t.Errorf("seed %d: %+v", seed, f)
				}
			}
			for _, kind := range kinds {
				if count[kind] < roundsLeast {
					t.Errorf("seed %d, %s: %s comes %d times", seed, length, kind, count[kind])
				}
			}
			if takes > length+10*time.Second {
				t.Errorf("seed %d: the plan for %s takes %s", seed, length, takes)
			}
		}
	}
	if slices.Equal(newPlan(1, time.Minute), newPlan(2, time.Minute)) {
		t.Error("two seeds have one plan")
	}
}
