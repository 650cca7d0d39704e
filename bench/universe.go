package bench

import "fmt"

// Universe lists the companies of requests, by index. Concurrent reads are safe.
type Universe struct {
	text []byte   // all names, concatenated
	ends []uint32 // end of each name in text
}

// universeMax bounds the number of companies, universeMaxBytes the size of their names.
const (
	universeMax      = 20_000_000
	universeMaxBytes = 1 << 31
)

// Len returns the number of companies.
func (u *Universe) Len() int { return len(u.ends) }

// Domain returns the domain of a company. Callers must not change it.
func (u *Universe) Domain(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = u.ends[i-1]
	}
	return u.text[start:u.ends[i]]
}

// MakeUniverse returns n companies. name appends the domain of an index.
func MakeUniverse(n int, name func(dst []byte, i int) []byte) (*Universe, error) {
	if n < 0 || n > universeMax {
		return nil, fmt.Errorf("%d companies: use at most %d", n, universeMax)
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
