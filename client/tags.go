package client

import (
	"container/list"
	"context"
	"sync"
)

// Tagged is a kept answer.
type Tagged struct {
	// Tag is the ETag of the answer.
	Tag string
	// Body is the JSON body. It must not be changed.
	Body []byte
}

// TagStore keeps answers, so that a read that changed nothing is free. Implementations are safe for concurrent use. They may forget
// any answer at any time. The keys of clients with different services or API keys differ, so that clients can share a store.
type TagStore interface {
	// Get returns the answer that is kept under a key, false if there is none.
	Get(ctx context.Context, key string) (Tagged, bool)
	// Put keeps an answer in the place of the one before.
	Put(ctx context.Context, key string, t Tagged)
}

// MemoryTags is a [TagStore] in memory. It forgets the answers that were not used for longest.
type MemoryTags struct {
	maxBytes int

	mu    sync.Mutex
	bytes int
	items map[string]*list.Element
	order *list.List // of memoryItem, last used first
}

type memoryItem struct {
	key string
	Tagged
}

// itemOverhead is about what an answer takes besides its text, in bytes.
const itemOverhead = 256

func (i memoryItem) size() int { return len(i.key) + len(i.Tag) + len(i.Body) + itemOverhead }

// NewMemoryTags returns an empty store that takes at most about maxBytes bytes. A score takes about 1 kB.
func NewMemoryTags(maxBytes int) *MemoryTags {
	return &MemoryTags{maxBytes: maxBytes, items: make(map[string]*list.Element), order: list.New()}
}

// Get implements [TagStore].
func (m *MemoryTags) Get(_ context.Context, key string) (Tagged, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.items[key]
	if !ok {
		return Tagged{}, false
	}
	m.order.MoveToFront(e)
	return e.Value.(memoryItem).Tagged, true
}

// Put implements [TagStore]. It does not keep an answer that is larger than the store.
func (m *MemoryTags) Put(_ context.Context, key string, t Tagged) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.items[key]; ok {
		m.remove(e)
	}
	item := memoryItem{key, t}
	if item.size() > m.maxBytes {
		return
	}
	m.items[key] = m.order.PushFront(item)
	m.bytes += item.size()
	for m.bytes > m.maxBytes {
		m.remove(m.order.Back())
	}
}

func (m *MemoryTags) remove(e *list.Element) {
	item := m.order.Remove(e).(memoryItem)
	delete(m.items, item.key)
	m.bytes -= item.size()
}
