package server

import (
	"testing"
	"time"
)

func TestDeadlineStandsNoEarlierAndLittleLater(t *testing.T) {
	t.Parallel()
	const slack = time.Second
	var stands time.Time
	moves := 0
	d := deadline{slack: slack, set: func(at time.Time) error { stands, moves = at, moves+1; return nil }}
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	wish := func(at time.Time) {
		t.Helper()
		d.wish = at
		if err := d.apply(); err != nil {
			t.Fatal(err)
		}
		if late := stands.Sub(at); at.IsZero() != stands.IsZero() || late < 0 || late > slack {
			t.Errorf("wished for %s, and %s stands", at, stands)
		}
	}
	wish(time.Time{})
	if moves != 0 {
		t.Error("a deadline was set that nobody wished for")
	}
	for i := range 10_000 { // requests of one connection, a millisecond apart
		wish(start.Add(time.Duration(i) * time.Millisecond))
	}
	if moves > 11 {
		t.Errorf("%d moves in 10 s", moves)
	}
	wish(start) // sooner again
	wish(start.Add(time.Hour))
	wish(time.Time{})
	wish(start)
}
