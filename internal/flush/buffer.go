package flush

import (
	"context"
	"sync"
)

// Buffer collects rows until they are written. The exported fields are set before the first use. Its methods may be called concurrently,
// but for Flush, which must not run beside another Flush.
type Buffer[Row any] struct {
	// Max is the maximum number of rows in memory, at least 1. Rows that are being written count.
	Max int
	// DropOldest makes a full buffer drop its oldest row for a new one. Without it, the buffer drops the new one.
	DropOldest bool
	// PageMax is the maximum number of rows of one write, at least 1.
	PageMax int
	// Write stores rows in the order of Add. After an error it gets the same rows again, and perhaps more. It must not keep the slice.
	Write func(ctx context.Context, rows []Row) error

	mu    sync.Mutex
	rows  []Row  // oldest first
	first uint64 // number of rows[0] among all rows that were added
}

// Add adds a row. It returns false if the buffer was full and dropped a row.
func (b *Buffer[Row]) Add(row Row) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := len(b.rows) >= b.Max
	switch {
	case full && !b.DropOldest:
		return false
	case full:
		b.rows = b.rows[1:]
		b.first++
	}
	b.rows = append(b.rows, row)
	return !full
}

// Len returns the number of rows in memory.
func (b *Buffer[Row]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.rows)
}

// Flush writes the rows that were added before, oldest first, a page at a time. It removes the rows of each page that is written. At the
// first error it returns it and keeps the other rows.
func (b *Buffer[Row]) Flush(ctx context.Context) error {
	b.mu.Lock()
	end := b.first + uint64(len(b.rows))
	b.mu.Unlock()
	for {
		page, next := b.page(end)
		if len(page) == 0 {
			return nil
		}
		if err := b.Write(ctx, page); err != nil {
			return err
		}
		b.remove(next)
	}
}

// page returns the first rows with numbers below end, at most PageMax, and the number after them. They stay in the buffer.
func (b *Buffer[Row]) page(end uint64) (page []Row, next uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first >= end {
		return nil, 0
	}
	n := min(len(b.rows), b.PageMax, int(end-b.first))
	return b.rows[:n:n], b.first + uint64(n)
}

// remove removes the rows with numbers below next.
func (b *Buffer[Row]) remove(next uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first >= next { // they were dropped meanwhile
		return
	}
	n := int(next - b.first)
	clear(b.rows[:n]) // releases what they refer to
	b.first = next
	rest := b.rows[n:]
	if len(rest) > n {
		b.rows = rest
		return
	}
	b.rows = b.rows[:copy(b.rows, rest)] // uses the array again
	clear(rest)
}

// Drain removes and returns all rows.
func (b *Buffer[Row]) Drain() []Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := b.rows
	b.rows, b.first = nil, b.first+uint64(len(rows))
	return rows
}
