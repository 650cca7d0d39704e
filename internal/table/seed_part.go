package table

import (
	"time"
)

// SeedPart is a part of a universe that is written with one insert: the companies of a range of
// indexes with a range of name numbers.
type SeedPart struct {
	First, Last  uint64 // places
	XFrom, XLast uint32 // numbers of names
	Records      uint32 // of each company
	Detailed     uint32 // number of records with signals per company, youngest first
	Mix          uint64
	Until        time.Time

	FirstWords, SecondWords, Kinds, Endings []string
}
