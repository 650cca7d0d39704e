// Package seed makes universes of companies that do not exist, for tests of load
// and of speed. A universe is a function of a few numbers: which company stands
// at a place, what its domain is and what each of its records says can be told
// without the store that holds them, here in Go and there in SQL alike.
//
// Companies are drawn from families. A family is one made-up company in eight
// phases of its life, each scored by the real formulas from 67 real signals; the
// records of a company pass through the phases of its family back and forth. So
// every record is exactly what scoring its signals gives, histories move as slowly
// as those of companies do, and ten million companies are made of some hundred
// thousand scorings.
package seed

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/scoring"
)

const (
	// DomainsMax is how many companies a universe can have.
	DomainsMax = 1 << 32
	// RecordsMax is how many records a company can have.
	RecordsMax = 200

	phases   = 8            // of a family
	period   = 2*phases - 2 // of the way through the phases and back
	families = 4096

	// The low bits of a company's place decide its name, the others are a number
	// behind it.
	nameBits  = 20
	nameCount = 1 << nameBits
	nameMask  = nameCount - 1
)

const (
	day = 24 * time.Hour
	// spacing is how far records of a company lie apart, give or take less than
	// 2*shift. No other two records are nearer to 30 days apart than neighbours.
	spacing = 30 * day
	shift   = 4*day + 12*time.Hour
)

// Streams of random numbers of a company. Those of its records begin at streamRecord.
const (
	streamPhase  = 0
	streamAge    = 1
	streamEnding = 2
	streamRecord = 16
)

// Universe says which universe. The same numbers always make the same one.
type Universe struct {
	Seed uint64
	// Domains is how many companies there are, at most DomainsMax. A universe is
	// the beginning of any larger one of the same seed.
	Domains int
	// Records is how many records each company has, at most RecordsMax.
	Records int
	// Until is when the youngest records are made, in whole milliseconds; none is younger.
	Until time.Time
}

// Validate reports all that is wrong with u.
func (u Universe) Validate() error {
	var faults []error
	if u.Domains < 1 || u.Domains > DomainsMax {
		faults = append(faults, fmt.Errorf("%d domains: must be 1 to %d", u.Domains, DomainsMax))
	}
	if u.Records < 1 || u.Records > RecordsMax {
		faults = append(faults, fmt.Errorf("%d records for each: must be 1 to %d", u.Records, RecordsMax))
	}
	if u.Until.IsZero() || !u.Until.Equal(u.Until.Truncate(time.Millisecond)) {
		faults = append(faults, errors.New("until must be in whole milliseconds"))
	}
	return errors.Join(faults...)
}

// hash64 is ClickHouse's intHash64.
func hash64(x uint64) uint64 {
	x ^= 0x4CF2D2BAAE6DA887
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}

// draw is the random number of a stream of the i-th company. mix is hash64 of the seed.
func draw(mix, i, stream uint64) uint64 { return hash64((i<<8 | stream) ^ mix) }

// scrambler undoes, on the low bits of a place, what SQL does to the number of a
// name: add, multiply and mix, twice. Names are then in no order that places show.
type scrambler struct{ add, back1, back2 uint64 }

func newScrambler(mix uint64) scrambler {
	return scrambler{add: mix >> nameBits & nameMask, back1: inverse(mix&nameMask | 1), back2: inverse(mix>>(2*nameBits)&nameMask | 1)}
}

// inverse is the number that undoes a multiplication by an odd one: each step of
// Newton's doubles the bits that are right, three at first.
func inverse(odd uint64) uint64 {
	x := odd
	for range 3 {
		x *= 2 - odd*x
	}
	return x
}

// name is the number of the name of a place.
func (s scrambler) name(place uint64) uint64 {
	x := place & nameMask
	x ^= x>>9 ^ x>>18
	x = (x - s.add) * s.back2 & nameMask
	x ^= x >> 11
	return (x - s.add) * s.back1 & nameMask
}

// Names are the names of the companies of a seed. It may be used concurrently.
type Names struct {
	mix      uint64
	scramble scrambler
}

// NewNames returns the names of a seed.
func NewNames(seed uint64) Names {
	mix := hash64(seed)
	return Names{mix, newScrambler(mix)}
}

// AppendDomain appends the domain of the i-th company, counted from 0, to b. No
// two companies have the same. Those of the first million have no number in it.
func (n Names) AppendDomain(b []byte, i uint64) []byte {
	x := n.scramble.name(i)
	b = append(b, firstWords[x>>13]...)
	b = append(b, secondWords[x>>6&127]...)
	b = append(b, '-')
	b = append(b, kinds[x&63]...)
	if number := i >> nameBits; number > 0 {
		b = append(b, '-')
		b = strconv.AppendUint(b, number, 10)
	}
	return append(b, endings[draw(n.mix, i, streamEnding)%16]...)
}

// Company is what the i-th company calls itself.
func (n Names) Company(i uint64) string {
	x := n.scramble.name(i)
	s := capital(firstWords[x>>13]+secondWords[x>>6&127]) + " " + capital(kinds[x&63])
	if number := i >> nameBits; number > 0 {
		s += " " + strconv.FormatUint(number, 10)
	}
	return s
}

// Domain is the domain of the i-th company of a seed, counted from 0. Those who
// need many do better with Names.
func Domain(seed, i uint64) string {
	return string(NewNames(seed).AppendDomain(make([]byte, 0, 40), i))
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// position is where on the way through the phases the j-th record of the i-th
// company stands, counted from the youngest.
func position(mix, i uint64, j int) uint64 {
	return (draw(mix, i, streamPhase)%period + uint64(j)) % period
}

// phase is the phase at a position of the way there and back.
func phase(position uint64) uint64 {
	if position < phases {
		return position
	}
	return period - position
}

// scoredAt is when the j-th record of the i-th company was made.
func (u Universe) scoredAt(mix, i uint64, j int) time.Time {
	youth := draw(mix, i, streamAge) % 65536 // squared, so that most are young; 20 days at most
	age := time.Duration(youth*youth*2/5)*time.Millisecond + time.Duration(j)*spacing
	if j > 0 {
		age += time.Duration(draw(mix, i, streamRecord+uint64(j))%uint64(2*shift/time.Millisecond))*time.Millisecond - shift
	}
	return u.Until.Add(-age).UTC()
}

// Cast holds the companies a universe is played by. It makes each when it is
// first asked for and is not safe for concurrent use.
type Cast struct {
	seed     uint64
	names    Names
	families [families]*[phases]Phase
}

// NewCast returns the cast of the universes of a seed.
func NewCast(seed uint64) *Cast {
	return &Cast{seed: seed, names: NewNames(seed)}
}

// Phase is a scored company of the cast. Its record has no domain, name, run and time.
type Phase struct {
	// ID is its number in the cast.
	ID     uint32
	Record scoring.Record
	// MomentumBefore is the momentum index of a record that follows one of the phase
	// with the next lower number, MomentumAfter of one that follows the next higher.
	MomentumBefore, MomentumAfter float64
}

// Record returns the j-th record of the i-th company of u, counted from the youngest.
func (c *Cast) Record(u Universe, i uint64, j int) scoring.Record {
	mix := c.names.mix
	p := position(mix, i, j)
	played := &c.family(i)[phase(p)]
	rec := played.Record
	rec.Domain, rec.CompanyName = string(c.names.AppendDomain(nil, i)), c.names.Company(i)
	rec.ScoredAt = u.scoredAt(mix, i, j)
	rec.Warnings = slices.Clone(rec.Warnings)
	for k := range rec.Warnings {
		rec.Warnings[k].At = rec.ScoredAt
	}
	switch {
	case j == u.Records-1:
	case p < phases-1: // the record before it was made of the next phase
		rec.MomentumIndex = played.MomentumAfter
	default:
		rec.MomentumIndex = played.MomentumBefore
	}
	return rec
}

// phases returns the phases that the companies of places first to last play, and
// forgets them.
func (c *Cast) phases(first, last uint64) []Phase {
	var all []Phase
	for i := first; i <= last && i < first+families; i++ {
		all = append(all, c.family(i)[:]...)
		c.families[i%families] = nil
	}
	return all
}

// family is the family of the i-th company.
func (c *Cast) family(i uint64) *[phases]Phase {
	number := i % families
	if c.families[number] == nil {
		c.families[number] = newFamily(c.seed, number)
	}
	return c.families[number]
}
