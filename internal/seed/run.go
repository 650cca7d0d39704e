package seed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"companyscore/internal/table"
)

// Signals selects the records with signals. Records without them need a fraction of the disk
// and the time.
type Signals string

// The choices.
const (
	SignalsNewest Signals = "newest" // of the youngest record of each company
	SignalsAll    Signals = "all"
	SignalsNone   Signals = "none"
)

// Spec describes a universe to write or a written one.
type Spec struct {
	Universe
	Signals Signals
}

// Validate returns all faults of p as one error.
func (spec Spec) Validate() error {
	err := spec.Universe.Validate()
	switch spec.Signals {
	case SignalsNewest, SignalsAll, SignalsNone:
		return err
	}
	return errors.Join(err, fmt.Errorf("signals %q: use newest, all or none", spec.Signals))
}

// State is the progress of the generation of a universe.
type State struct {
	// Plan is the universe. Its Domains are the written companies.
	Spec
	// Target is the number of companies of the current generation. Next is the number of the
	// next names, nameCount when all are written.
	Target int
	Next   uint32
}

// Whole reports whether the generation is complete.
func (s State) Whole() bool { return s.Next >= nameCount }

// stateOf returns the state that a row describes.
func stateOf(row table.SeedRun) State {
	u := Universe{Seed: row.Seed, Domains: row.Domains, Records: row.Records, Until: row.Until}
	return State{Spec: Spec{Universe: u, Signals: Signals(row.Signals)}, Target: row.Target, Next: row.Next}
}

func (s State) row() table.SeedRun {
	return table.SeedRun{
		Seed: s.Seed, Domains: s.Domains, Records: s.Records, Until: s.Until, Signals: string(s.Signals), Target: s.Target, Next: s.Next,
	}
}

// Store is the store of a universe.
type Store interface {
	// Seeded returns the state of the universe in the store.
	Seeded(ctx context.Context) (table.SeedRun, bool, error)
	NoteSeeded(ctx context.Context, s table.SeedRun) error
	CountRecords(ctx context.Context) (uint64, error)
	PutPhases(ctx context.Context, phases []table.SeedPhase) error
	DropPhases(ctx context.Context) error
	SeedRecords(ctx context.Context, p table.SeedPart) error
	// Compact merges rows that replaced each other.
	Compact(ctx context.Context) error
}

// ErrNotEmpty reports that a store has records of another origin.
var ErrNotEmpty = errors.New("the store already has records")

// Write writes the missing part of a universe and returns the state before. After an
// interruption it continues where it stopped. A larger universe extends a smaller one. A zero
// Until means that of the existing universe, or now. If the store has records of another
// origin, Write returns ErrNotEmpty unless beside is true. progress gets the number of written
// records and their total after each part; it may be nil.
func Write(ctx context.Context, store Store, spec Spec, beside bool, progress func(done, total int64)) (before State, err error) {
	row, found, err := store.Seeded(ctx)
	if err != nil {
		return before, err
	}
	before = stateOf(row)
	switch {
	case found && spec.Until.IsZero():
		spec.Until = before.Until
	case spec.Until.IsZero():
		spec.Until = time.Now().UTC().Truncate(time.Second)
	}
	if err := spec.Validate(); err != nil {
		return before, err
	}
	switch {
	case !found:
		n, err := store.CountRecords(ctx)
		if err != nil {
			return before, err
		}
		if n > 0 && !beside {
			return before, fmt.Errorf("%w: %d", ErrNotEmpty, n)
		}
	case spec.Seed != before.Seed || spec.Records != before.Records || spec.Signals != before.Signals || !spec.Until.Equal(before.Until):
		return before,
			fmt.Errorf("the store has another universe: seed %d, %d records of each company, signals %s, until %s: use the same, or an "+
				"empty store",
				before.Seed, before.Records, before.Signals, before.Until.Format(time.RFC3339Nano))
	case !before.Whole() && spec.Domains != before.Target:
		return before, fmt.Errorf("the store has an incomplete universe of %d companies: complete it first", before.Target)
	}
	if spec.Domains <= before.Domains {
		return before, nil
	}
	state := State{Spec: spec, Target: spec.Domains, Next: before.Next}
	if state.Domains = before.Domains; before.Whole() {
		state.Next = 0
	}
	if err := write(ctx, store, state, progress); err != nil {
		return before, err
	}
	if err := store.DropPhases(ctx); err != nil {
		return before, err
	}
	return before, store.Compact(ctx)
}

// partMax is the maximum number of companies per part. Tests make it smaller.
var partMax = 1 << 17

// partSize is the number of companies per part. Parts are smaller if companies have many
// records.
func partSize(records int) int { return min(partMax, max(1<<20/records, 1)) }

// partsAtOnce is the number of concurrent inserts. Each uses one processor of the store.
const partsAtOnce = 2

// write writes the missing companies.
func write(ctx context.Context, store Store, s State, progress func(done, total int64)) error {
	first, last := uint64(s.Domains), uint64(s.Target-1)
	missing := last - first + 1
	// The state is written first, so that an interrupted generation is recognised.
	if err := store.NoteSeeded(ctx, s.row()); err != nil {
		return err
	}
	if err := store.PutPhases(ctx, NewCast(s.Seed).phases(first, last)); err != nil {
		return err
	}
	part := table.SeedPart{
		First: first, Last: last, Records: uint32(s.Records), Mix: hash64(s.Seed), Until: s.Until,
		FirstWords: firstWords, SecondWords: secondWords, Kinds: kinds, Endings: endings,
	}
	switch s.Signals {
	case SignalsNewest:
		part.Detailed = 1
	case SignalsAll:
		part.Detailed = part.Records
	}
	step := uint32(min(nameCount*uint64(partSize(s.Records))/missing+1, nameCount))
	for s.Next < nameCount {
		parts, partsCtx := errgroup.WithContext(ctx)
		for range partsAtOnce {
			if s.Next == nameCount {
				break
			}
			part.XFrom, part.XLast = s.Next, min(s.Next+step, nameCount)-1
			s.Next = part.XLast + 1
			now := part
			parts.Go(func() error { return store.SeedRecords(partsCtx, now) })
		}
		if err := parts.Wait(); err != nil {
			return err
		}
		if s.Next == nameCount {
			s.Domains = s.Target
		}
		if err := store.NoteSeeded(ctx, s.row()); err != nil {
			return err
		}
		if progress != nil {
			done := first + missing*uint64(s.Next)/nameCount
			progress(int64(done)*int64(s.Records), int64(s.Target)*int64(s.Records))
		}
	}
	return nil
}
