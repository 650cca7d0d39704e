package queue

import (
	"errors"
	"fmt"
	"slices"

	"companyscore/scoring"
)

// Weights are the relative shares of the lanes in claimed runs while all lanes have
// waiting runs. A lane of weight 0 is served only while all others are empty.
type Weights map[scoring.Lane]int

// DefaultWeights returns the weights used without a tiers file.
func DefaultWeights() Weights {
	return Weights{scoring.LaneAPI: 8, scoring.LaneRefresh: 1, scoring.LaneBulk: 2}
}

// Validate returns an error for an unknown lane or a negative weight, or if no weight is
// above 0. A lane without a weight has weight 0.
func (w Weights) Validate() error {
	total := 0
	for lane, weight := range w {
		switch {
		case !slices.Contains(scoring.Lanes, lane):
			return fmt.Errorf("weight of lane %q: use one of %q", lane, scoring.Lanes)
		case weight < 0:
			return fmt.Errorf("weight of lane %s is %d: must not be negative", lane, weight)
		}
		total += weight
	}
	if total == 0 {
		return errors.New("at least one lane must have a weight above 0")
	}
	return nil
}
