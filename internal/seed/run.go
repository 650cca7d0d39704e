package seed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// Signals says which records are written with their signals. Those without take a
// fraction of the room and of the time.
type Signals string

// The choices.
const (
	SignalsNewest Signals = "newest" // of the youngest record of each company
	SignalsAll    Signals = "all"
	SignalsNone   Signals = "none"
)

// Plan is a universe to be written, or one that was.
type Plan struct {
	Universe
	Signals Signals
}

// Validate reports all that is wrong with p.
func (p Plan) Validate() error {
	err := p.Universe.Validate()
	switch p.Signals {
	case SignalsNewest, SignalsAll, SignalsNone:
		return err
	}
	return errors.Join(err, fmt.Errorf("signals %q: use newest, all or none", p.Signals))
}

// Part is a piece of a universe that is written at once: of the companies of some
// places those whose names have some numbers.
type Part struct {
	First, Last  uint64 // places
	XFrom, XLast uint32 // numbers of names
	Records      uint32 // of each company
	Detailed     uint32 // how many of them have their signals, youngest first
	Mix          uint64
	Until        time.Time

	FirstWords, SecondWords, Kinds, Endings []string
}

// State is how far the writing of a universe has come.
type State struct {
	// Plan is the universe with as many companies as are written.
	Plan
	// Target is how many companies are being written, and Next is the number of the
	// names that come next; it is nameCount when they are all there.
	Target int
	Next   uint32
}

// Whole reports whether nothing is half done.
func (s State) Whole() bool { return s.Next >= nameCount }

// Store is where a universe is written to.
type Store interface {
	// Seeded returns how far a universe has come that was generated here before.
	Seeded(ctx context.Context) (State, bool, error)
	NoteSeeded(ctx context.Context, s State) error
	CountRecords(ctx context.Context) (uint64, error)
	PutPhases(ctx context.Context, phases []Phase) error
	DropPhases(ctx context.Context) error
	SeedRecords(ctx context.Context, p Part) error
	// Compact merges rows that replaced each other.
	Compact(ctx context.Context) error
}

// ErrNotEmpty says that a store holds records of another origin.
var ErrNotEmpty = errors.New("the store already has records")

// Write writes a universe, or what is missing of it, and returns what was there
// before. Interrupted, it goes on where it stopped; a larger universe begins with
// the smaller one that is there. A zero Until means the one it was begun with, or
// now. A store with records of another origin is refused with ErrNotEmpty unless
// beside is true. progress is told the number of records written, of all there
// will be, after each part; it may be nil.
func Write(ctx context.Context, store Store, p Plan, beside bool, progress func(done, total int64)) (before State, err error) {
	before, found, err := store.Seeded(ctx)
	if err != nil {
		return before, err
	}
	switch {
	case found && p.Until.IsZero():
		p.Until = before.Until
	case p.Until.IsZero():
		p.Until = time.Now().UTC().Truncate(time.Second)
	}
	if err := p.Validate(); err != nil {
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
	case p.Seed != before.Seed || p.Records != before.Records || p.Signals != before.Signals || !p.Until.Equal(before.Until):
		return before, fmt.Errorf("the store has another universe: seed %d, %d records of each company, signals %s, until %s: use the same, or an empty store",
			before.Seed, before.Records, before.Signals, before.Until.Format(time.RFC3339Nano))
	case !before.Whole() && p.Domains != before.Target:
		return before, fmt.Errorf("the store has an incomplete universe of %d companies: complete it first", before.Target)
	}
	if p.Domains <= before.Domains {
		return before, nil
	}
	state := State{Plan: p, Target: p.Domains, Next: before.Next}
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

// partSize is how many companies are written at once. With them go up to
// RecordsMax times as many records, so the parts are smaller where there are many.
func partSize(records int) int { return min(1<<17, max(1<<20/records, 1)) }

// partsAtOnce is how many parts are written together, as writing one keeps one
// processor of the store busy.
const partsAtOnce = 2

// write writes the companies that are missing.
func write(ctx context.Context, store Store, s State, progress func(done, total int64)) error {
	first, last := uint64(s.Domains), uint64(s.Target-1)
	missing := last - first + 1
	// First of all, so that what follows is known for what it is wherever it stops.
	if err := store.NoteSeeded(ctx, s); err != nil {
		return err
	}
	if err := store.PutPhases(ctx, NewCast(s.Seed).phases(first, last)); err != nil {
		return err
	}
	part := Part{
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
		if err := store.NoteSeeded(ctx, s); err != nil {
			return err
		}
		if progress != nil {
			done := first + missing*uint64(s.Next)/nameCount
			progress(int64(done)*int64(s.Records), int64(s.Target)*int64(s.Records))
		}
	}
	return nil
}
