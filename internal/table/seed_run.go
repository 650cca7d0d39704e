package table

import "time"

// SeedRun is the progress of the generation of a universe.
type SeedRun struct {
	Seed    uint64
	Domains int // companies written
	Records int // of each company
	Until   time.Time
	Signals string // which records have signals: newest, all or none
	Target  int    // companies of the current generation
	Next    uint32 // number of the next names
}
