package process

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Parts are the open parts of a role. A role adds each part when it has opened it and closes all at its end, also when a later part does
// not open. The zero value has no part. It is safe for concurrent use.
type Parts struct {
	mu   sync.Mutex
	ends []func(context.Context) error
}

// Defer adds what ends a part that was opened. end should return soon after its context has ended.
func (p *Parts) Defer(end func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, end)
}

// DeferFunc is Defer for what takes no context and cannot fail.
func (p *Parts) DeferFunc(end func()) {
	p.Defer(func(context.Context) error { end(); return nil })
}

// Close ends the parts, the last one first, and returns their joined errors. All together have the time of ShutdownContext. A second Close
// does nothing.
func (p *Parts) Close(ctx context.Context) error {
	ctx, cancel := ShutdownContext(ctx)
	defer cancel()
	p.mu.Lock()
	ends := p.ends
	p.ends = nil
	p.mu.Unlock()
	var faults []error
	for _, end := range slices.Backward(ends) {
		faults = append(faults, end(ctx))
	}
	return errors.Join(faults...)
}
