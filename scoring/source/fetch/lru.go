package fetch

import (
	"container/list"
	"sync"
)

// lru is a cache of bounded total size that evicts the least recently used values. It is safe for
// concurrent use.
type lru[K comparable, V any] struct {
	mu    sync.Mutex
	limit int64
	size  int64
	order *list.List // of *lruItem, most recently used first
	items map[K]*list.Element
}

type lruItem[K comparable, V any] struct {
	key   K
	value V
	size  int64
}

func newLRU[K comparable, V any](limit int64) *lru[K, V] {
	return &lru[K, V]{limit: limit, order: list.New(), items: make(map[K]*list.Element)}
}

func (l *lru[K, V]) get(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.items[key]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*lruItem[K, V]).value, true
}

// getOr returns the value of key. If there is none it stores the result of create with size 1.
// create runs under the lock.
func (l *lru[K, V]) getOr(key K, create func() V) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.items[key]; ok {
		l.order.MoveToFront(e)
		return e.Value.(*lruItem[K, V]).value
	}
	value := create()
	l.putLocked(key, value, 1)
	return value
}

// put stores a value unless it is larger than an eighth of the limit.
func (l *lru[K, V]) put(key K, value V, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.putLocked(key, value, size)
}

func (l *lru[K, V]) putLocked(key K, value V, size int64) {
	if e, ok := l.items[key]; ok {
		l.remove(e)
	}
	if size > max(l.limit/8, 1) {
		return
	}
	for l.size+size > l.limit {
		l.remove(l.order.Back())
	}
	l.size += size
	l.items[key] = l.order.PushFront(&lruItem[K, V]{key, value, size})
}

func (l *lru[K, V]) remove(e *list.Element) {
	item := l.order.Remove(e).(*lruItem[K, V])
	delete(l.items, item.key)
	l.size -= item.size
}
