package server

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/sync/semaphore"
)

// Large answers stay in memory until their clients have read them, large request bodies
// until the request is answered. These limits bound both, in addition to the buffers of connections.
const (
	answersMax    = 64 << 20 // bytes of large answers in flight
	answersKeyMax = 16 << 20 // the same for one API key
	bodiesMax     = 64 << 20 // bytes of request bodies that do not fit a connection's buffer

	// reserveMax bounds the wait of a request for its bytes. It is then refused.
	reserveMax = time.Second

	// After answers of burstMin bytes or more were in flight, and then none for burstOver,
	// unused memory is returned to the operating system. The runtime alone would take some
	// minutes.
	burstMin  = 8 << 20
	burstOver = 10 * time.Second
)

// inFlightBudget bounds what is in flight, in bytes or another unit, in total and per key. It is safe for
// concurrent use.
type inFlightBudget struct {
	keyMax int64
	all    *semaphore.Weighted
	used   atomic.Int64
	burst  atomic.Bool // burstMin was reached since memory was last returned
	over   *time.Timer // returns memory to the operating system

	mu   sync.Mutex
	keys map[string]*share
}

// share is the budget of one key. It exists while it has reservations or waiting callers.
type share struct {
	*semaphore.Weighted
	users int
}

func newInFlightBudget(all, key int64) *inFlightBudget {
	b := &inFlightBudget{keyMax: key, all: semaphore.NewWeighted(all), keys: make(map[string]*share)}
	b.over = time.AfterFunc(burstOver, func() {
		if b.used.Load() == 0 && b.burst.Swap(false) {
			debug.FreeOSMemory()
		}
	})
	return b
}

// reservation is a number of reserved bytes of a budget. It is not safe for concurrent use.
type reservation struct {
	budget *inFlightBudget
	key    string
	share  *share
	bytes  int64
}

// reserve reserves bytes for a key. It waits for reserveMax at most, or until ctx ends. It
// then returns byKey if the budget of the key is used up, else byAll.
func (b *inFlightBudget) reserve(ctx context.Context, key string, bytes int64, byKey, byAll *problem) (*reservation, error) {
	ctx, cancel := context.WithTimeout(ctx, reserveMax)
	defer cancel()
	h := &reservation{budget: b, key: key, share: b.enter(key), bytes: bytes}
	if h.share.Acquire(ctx, bytes) != nil {
		b.leave(key)
		return nil, byKey
	}
	if b.all.Acquire(ctx, bytes) != nil {
		h.share.Release(bytes)
		b.leave(key)
		return nil, byAll
	}
	if b.used.Add(bytes) >= burstMin {
		b.burst.Store(true)
	}
	return h, nil
}

func (b *inFlightBudget) enter(key string) *share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.keys[key]
	if s == nil {
		s = &share{Weighted: semaphore.NewWeighted(b.keyMax)}
		b.keys[key] = s
	}
	s.users++
	return s
}

func (b *inFlightBudget) leave(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.keys[key]; s.users > 1 {
		s.users--
	} else {
		delete(b.keys, key)
	}
}

// shrink reduces the reservation to the given number of bytes.
func (h *reservation) shrink(bytes int64) {
	if spare := h.bytes - bytes; spare > 0 {
		h.bytes = bytes
		h.budget.used.Add(-spare)
		h.budget.all.Release(spare)
		h.share.Release(spare)
	}
}

// Close releases all bytes. fasthttp calls it for the user values of a request when the
// request is answered.
func (h *reservation) Close() error {
	h.shrink(0)
	h.budget.leave(h.key)
	if h.budget.used.Load() == 0 && h.budget.burst.Load() {
		h.budget.over.Reset(burstOver)
	}
	return nil
}

const reservationLocal = "reservation"

// reserveAnswer reserves bytes for the answer of a handler until the answer is written. Every
// handler whose answers may exceed keptBytes calls it first.
func (s *Server) reserveAnswer(c *fiber.Ctx, ctx context.Context, bytes int) error {
	h, err := s.answers.reserve(ctx, callerOf(c).KeyID, int64(bytes), &errKeyAnswers, &errAllAnswers)
	if err != nil {
		return err
	}
	c.Locals(reservationLocal, h)
	return nil
}

// fitAnswer reduces the reservation to the size of the finished answer.
func fitAnswer(c *fiber.Ctx) {
	if h, ok := c.Locals(reservationLocal).(*reservation); ok {
		h.shrink(int64(len(c.Response().Body())))
	}
}
