package table

import (
	"companyscore/scoring"
)

// SeedPhase is a scored phase of a family. Its record has no domain, name, run and times.
type SeedPhase struct {
	// ID is its number in the cast.
	ID     uint32
	Record scoring.Record
	// MomentumBefore is the momentum index of a record that follows one of the phase
	// with the next lower number, MomentumAfter of one that follows the next higher.
	MomentumBefore, MomentumAfter float64
}
