package universe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"companyscore/scoring"
)

// format begins every encoded tally and is changed when its meaning changes.
const format = "universe 2\n"

// ErrFormat says that bytes are no tally that this program can read.
var ErrFormat = errors.New("not a tally of the universe that this version reads")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode returns the tally as bytes that carry their own checksum. Equal tallies
// give equal bytes.
func Encode(t *Tally) []byte {
	w := writer{b: []byte(format)}
	w.text(t.PipelineVersion)
	w.number(t.Generation)
	w.number(t.Note)
	w.number(t.Position)
	w.number(t.Records)
	w.instant(t.At)
	w.instant(t.Full)
	for _, n := range t.Premium {
		w.signed(n)
	}
	w.length(len(t.Cohorts))
	for _, id := range slices.Sorted(maps.Keys(t.Cohorts)) {
		c := t.Cohorts[id]
		w.number(id)
		w.text(c.Sector)
		w.text(c.GeoScope)
		w.text(string(c.Profile))
		w.length(len(c.Steps))
		last := 0
		for _, s := range c.Steps {
			w.signed(int64(s.Step - last))
			w.signed(s.Count)
			last = s.Step
		}
		for _, sum := range []int64{c.Sums.TeamStructure, c.Sums.MarketPosition, c.Sums.MomentumTailwinds, c.Sums.FinancialHealth} {
			w.signed(sum)
		}
		w.ranking(c.Top)
	}
	for _, window := range Windows {
		lists := t.Movers[window]
		w.ranking(lists.Up)
		w.ranking(lists.Down)
		shown, ok := t.Shown[window]
		if !ok {
			w.number(0)
			continue
		}
		w.number(1)
		w.instant(shown.Start)
		w.instant(shown.End)
		w.movers(shown.Gainers)
		w.movers(shown.Decliners)
	}
	return binary.LittleEndian.AppendUint32(w.b, crc32.Checksum(w.b, castagnoli))
}

type writer struct{ b []byte }

func (w *writer) number(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) signed(n int64)  { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) length(n int)    { w.number(uint64(n)) }
func (w *writer) text(s string) {
	w.length(len(s))
	w.b = append(w.b, s...)
}

// instant keeps milliseconds, which is what the store has.
func (w *writer) instant(t time.Time) { w.signed(t.UnixMilli()) }

func (w *writer) ranking(r Ranking) {
	all := uint64(0)
	if r.All {
		all = 1
	}
	w.number(all)
	w.signed(int64(r.LastKey))
	w.text(r.LastDomain)
	w.length(len(r.List))
	for _, l := range r.List {
		w.number(l.Company)
		w.text(l.Domain)
		w.text(l.Name)
		w.signed(int64(l.Key))
		w.signed(int64(l.Now))
		w.signed(int64(l.Then))
	}
}

func (w *writer) movers(list []Mover) {
	w.length(len(list))
	for _, m := range list {
		w.text(m.Domain)
		w.text(m.CompanyName)
		w.signed(hundredths(m.Now))
		w.signed(hundredths(m.Then))
	}
}

// Decode reads what Encode wrote. Its error wraps ErrFormat. All texts of the
// result lie in one piece of memory, so that a new tally is little work for the
// garbage collector.
func Decode(b []byte) (*Tally, error) {
	if len(b) < len(format)+4 || string(b[:len(format)]) != format {
		return nil, ErrFormat
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, fmt.Errorf("%w: the checksum is wrong", ErrFormat)
	}
	r := reader{b: body[len(format):], s: string(body[len(format):])}
	t := NewTally(r.text(), 0, Limits{})
	t.Generation, t.Note, t.Position, t.Records = r.number(), r.number(), r.number(), r.number()
	t.At, t.Full = r.instant(), r.instant()
	for i := range t.Premium {
		t.Premium[i] = r.signed()
	}
	for range r.length(8) {
		id := r.number()
		c := &Cohort{GroupKey: GroupKey{r.text(), r.text(), scoring.Profile(r.text())}}
		c.Steps = make([]StepCount, r.length(2))
		last := int64(0)
		for i := range c.Steps {
			last += r.signed()
			c.Steps[i] = StepCount{int(last), r.signed()}
		}
		for _, sum := range []*int64{&c.Sums.TeamStructure, &c.Sums.MarketPosition, &c.Sums.MomentumTailwinds, &c.Sums.FinancialHealth} {
			*sum = r.signed()
		}
		c.Top = r.ranking()
		t.Cohorts[id] = c
	}
	for _, window := range Windows {
		t.Movers[window].Up, t.Movers[window].Down = r.ranking(), r.ranking()
		if r.number() == 1 {
			t.Shown[window] = Movers{Start: r.instant(), End: r.instant(), Gainers: r.movers(), Decliners: r.movers()}
		}
	}
	if r.err == nil && r.at != len(r.b) {
		r.fail("there is more than belongs to it")
	}
	if r.err != nil {
		return nil, r.err
	}
	return t, nil
}

// reader reads until something is wrong, and then only zeros.
type reader struct {
	b   []byte
	s   string // the same bytes
	at  int
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrFormat, what)
	}
	r.at = len(r.b)
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.fail("it is cut off")
		return 0
	}
	r.at += n
	return v
}

func (r *reader) signed() int64 {
	v, n := binary.Varint(r.b[r.at:])
	if n <= 0 {
		r.fail("it is cut off")
		return 0
	}
	r.at += n
	return v
}

// length is that of a list whose elements take so many bytes at least.
func (r *reader) length(element int) int {
	n := r.number()
	if n > uint64((len(r.b)-r.at)/element) {
		r.fail("it is cut off")
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.length(1)
	s := r.s[r.at : r.at+n]
	r.at += n
	return s
}

func (r *reader) instant() time.Time { return time.UnixMilli(r.signed()).UTC() }

func (r *reader) ranking() Ranking {
	out := Ranking{All: r.number() == 1, LastKey: int(r.signed()), LastDomain: r.text()}
	out.List = make([]Leader, r.length(6))
	for i := range out.List {
		out.List[i] = Leader{r.number(), r.text(), r.text(), int(r.signed()), int(r.signed()), int(r.signed())}
	}
	return out
}

func (r *reader) movers() []Mover {
	list := make([]Mover, r.length(4))
	for i := range list {
		m := Mover{Domain: r.text(), CompanyName: r.text(), Now: points(int(r.signed())), Then: points(int(r.signed()))}
		m.RatingNow, m.RatingThen = scoring.RatingOf(m.Now), scoring.RatingOf(m.Then)
		list[i] = m
	}
	return list
}
