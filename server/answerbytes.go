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

// Large answers are in memory until their clients have read them, and large request bodies
// while they arrive. Both are bounded, beside the buffers of connections.
const (
	answersMax    = 64 << 20 // of large answers in flight
	answersKeyMax = 16 << 20 // the same for one API key
	bodiesMax     = 64 << 20 // of request bodies that do not fit a connection's buffer

	// reserveMax is how long a request waits for its bytes before it is refused.
	reserveMax = time.Second

	// When answers of burstMin bytes or more were in flight at once, and then none for
	// burstOver, unused memory is returned to the operating system. By itself the runtime
	// would do that after some minutes.
	burstMin  = 8 << 20
	burstOver = 10 * time.Second
)

// budget bounds bytes in flight, of all and of one key. It may be used concurrently.
type budget struct {
	keyMax int64
	all    *semaphore.Weighted
	used   atomic.Int64
	burst  atomic.Bool // burstMin was reached since memory was returned
	over   *time.Timer // returns memory

	mu   sync.Mutex
	keys map[string]*share
}

// share is the part of a budget that one key may use. It exists while it is in use.
type share struct {
	*semaphore.Weighted
	users int
}

func newBudget(all, key int64) *budget {
	b := &budget{keyMax: key, all: semaphore.NewWeighted(all), keys: make(map[string]*share)}
	b.over = time.AfterFunc(burstOver, func() {
		if b.used.Load() == 0 && b.burst.Swap(false) {
			debug.FreeOSMemory()
		}
	})
	return b
}

// reservation is a number of bytes of a budget. It is for one goroutine.
type reservation struct {
	budget *budget
	key    string
	share  *share
	bytes  int64
}

// reserve reserves bytes for a key. It waits for them for reserveMax at most, or until ctx
// ends. Then it returns byKey if the key uses what it may, or byAll.
func (b *budget) reserve(ctx context.Context, key string, bytes int64, byKey, byAll *problem) (*reservation, error) {
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

func (b *budget) enter(key string) *share {
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

func (b *budget) leave(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.keys[key]; s.users > 1 {
		s.users--
	} else {
		delete(b.keys, key)
	}
}

// shrink releases all but a number of bytes.
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

// reserveAnswer reserves bytes for the answer that a handler is about to make, until the
// answer is written. Every handler whose answers may exceed keptBytes calls it.
func (s *Server) reserveAnswer(c *fiber.Ctx, ctx context.Context, bytes int) error {
	h, err := s.answers.reserve(ctx, callerOf(c).KeyID, int64(bytes), &errKeyAnswers, &errAllAnswers)
	if err != nil {
		return err
	}
	c.Locals(reservationLocal, h)
	return nil
}

// fitAnswer releases the bytes that the finished answer does not need.
func fitAnswer(c *fiber.Ctx) {
	if h, ok := c.Locals(reservationLocal).(*reservation); ok {
		h.shrink(int64(len(c.Response().Body())))
	}
}
