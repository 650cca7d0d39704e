package bench

import "fmt"

// Universe is the companies that requests ask for, by number from 0. It may be read
// from several goroutines.
type Universe struct {
	text []byte   // all names, one after the other
	ends []uint32 // of each within text
}

// universeMax bounds the companies of a universe, and what their names may take.
const (
	universeMax      = 20_000_000
	universeMaxBytes = 1 << 31
)

// Len is the number of companies.
func (u *Universe) Len() int { return len(u.ends) }

// Domain returns the name of a company. It must not be changed.
func (u *Universe) Domain(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = u.ends[i-1]
	}
	return u.text[start:u.ends[i]]
}

// MakeUniverse returns n companies, each named by what name appends for its number.
func MakeUniverse(n int, name func(dst []byte, i int) []byte) (*Universe, error) {
	if n < 0 || n > universeMax {
		return nil, fmt.Errorf("%d companies: at most %d", n, universeMax)
	}
	u := &Universe{ends: make([]uint32, 0, n)}
	for i := range n {
		u.text = name(u.text, i)
		if len(u.text) > universeMaxBytes {
			return nil, fmt.Errorf("the names of %d companies take more than %d bytes", n, universeMaxBytes)
		}
		u.ends = append(u.ends, uint32(len(u.text)))
	}
	return u, nil
}
