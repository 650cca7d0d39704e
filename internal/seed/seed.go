// Package seed generates universes of companies for load tests. A universe is a function of a
// few numbers: the domain and all records of a company follow from its index, without a store.
// Go and SQL have the same algorithm.
//
// Companies are copies of families. A family is one generated company in eight phases, each
// scored with the real formulas from 67 signals. The records of a company go through the
// phases of its family back and forth. So every record matches its signals, histories move
// slowly, and ten million companies need 32,768 scorings.
package seed

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/internal/table"
	"companyscore/scoring"
)

const (
	// DomainsMax is the maximum number of companies of a universe.
	DomainsMax = 1 << 32
	// RecordsMax is the maximum number of records per company.
	RecordsMax = 200

	phases   = 8            // of a family
	period   = 2*phases - 2 // of the way through the phases and back
	families = 4096

	// The low bits of a company's index select its name, the other bits are a number after it.
	nameBits  = 20
	nameCount = 1 << nameBits
	nameMask  = nameCount - 1
)

const (
	day = 24 * time.Hour
	// spacing is the time between records of a company, plus or minus less than
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

// Universe identifies a universe. Equal values mean equal universes.
type Universe struct {
	Seed uint64
	// Domains is the number of companies, at most DomainsMax. A universe is a prefix of any
	// larger one of the same seed.
	Domains int
	// Records is the number of records per company, at most RecordsMax.
	Records int
	// Until is the largest possible ScoredAt, in whole milliseconds.
	Until time.Time
}

// Validate returns all faults of u as one error.
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

// hash64 is intHash64 of ClickHouse.
func hash64(x uint64) uint64 {
	x ^= 0x4CF2D2BAAE6DA887
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}

// draw returns the random number of a stream of the i-th company. mix is hash64 of the seed.
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

// name returns the number of the name of an index.
func (s scrambler) name(place uint64) uint64 {
	x := place & nameMask
	x ^= x>>9 ^ x>>18
	x = (x - s.add) * s.back2 & nameMask
	x ^= x >> 11
	return (x - s.add) * s.back1 & nameMask
}

// Names are the names of the companies of a seed. It is safe for concurrent use.
type Names struct {
	mix      uint64
	scramble scrambler
}

// NewNames returns the names of a seed.
func NewNames(seed uint64) Names {
	mix := hash64(seed)
	return Names{mix, newScrambler(mix)}
}

// AppendDomain appends the domain of the i-th company, counted from 0, to b. Domains are
// unique. Those of the first million companies have no number.
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

// Company returns the name of the i-th company.
func (n Names) Company(i uint64) string {
	x := n.scramble.name(i)
	s := capital(firstWords[x>>13]+secondWords[x>>6&127]) + " " + capital(kinds[x&63])
	if number := i >> nameBits; number > 0 {
		s += " " + strconv.FormatUint(number, 10)
	}
	return s
}

// Domain returns the domain of the i-th company of a seed, counted from 0. For many domains
// use Names.
func Domain(seed, i uint64) string {
	return string(NewNames(seed).AppendDomain(make([]byte, 0, 40), i))
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// position returns the position of the j-th record of the i-th company in the period of
// phases, counted from the youngest.
func position(mix, i uint64, j int) uint64 {
	return (draw(mix, i, streamPhase)%period + uint64(j)) % period
}

// phase returns the phase at a position of the period.
func phase(position uint64) uint64 {
	if position < phases {
		return position
	}
	return period - position
}

// scoredAt returns the ScoredAt of the j-th record of the i-th company.
func (u Universe) scoredAt(mix, i uint64, j int) time.Time {
	youth := draw(mix, i, streamAge) % 65536 // squared, so that most are young; 20 days at most
	age := time.Duration(youth*youth*2/5)*time.Millisecond + time.Duration(j)*spacing
	if j > 0 {
		age += time.Duration(draw(mix, i, streamRecord+uint64(j))%uint64(2*shift/time.Millisecond))*time.Millisecond - shift
	}
	return u.Until.Add(-age).UTC()
}

// Cast has the families of a universe. It scores a family on first use. It is not safe for
// concurrent use.
type Cast struct {
	seed     uint64
	names    Names
	families [families]*[phases]table.SeedPhase
}

// NewCast returns the cast of the universes of a seed.
func NewCast(seed uint64) *Cast {
	return &Cast{seed: seed, names: NewNames(seed)}
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
	rec.Signals = slices.Clone(rec.Signals)
	for k := range rec.Signals {
		if rec.Signals[k].Known() {
			rec.Signals[k].ObservedAt = rec.ScoredAt
		}
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
func (c *Cast) phases(first, last uint64) []table.SeedPhase {
	var all []table.SeedPhase
	for i := first; i <= last && i < first+families; i++ {
		all = append(all, c.family(i)[:]...)
		c.families[i%families] = nil
	}
	return all
}

// family returns the family of the i-th company.
func (c *Cast) family(i uint64) *[phases]table.SeedPhase {
	number := i % families
	if c.families[number] == nil {
		c.families[number] = newFamily(c.seed, number)
	}
	return c.families[number]
}
