package console

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// pagesMax bounds the pages that read the stores at once. A page makes at most three reads at
	// once, so calls of the API keep some of the 16 connections to ClickHouse.
	pagesMax = 4
	// accountPagesMax bounds those of one account, and pageWait the wait of a page for its turn.
	accountPagesMax = 2
	pageWait        = time.Second
)

var (
	errAccountPages = &pageError{http.StatusTooManyRequests, "Too many pages at once",
		"This account is loading too many pages at once. Wait a second, then load this page again."}
	errAllPages = &pageError{http.StatusServiceUnavailable, "Console busy",
		"Others are loading too many pages at once. Wait a second, then load this page again."}
)

// slots bounds the pages in flight of all accounts and of each. It is safe for concurrent use.
type slots struct {
	all chan struct{}

	mu       sync.Mutex
	accounts map[string]*accountSlots // with a page that waits or is in flight
}

type accountSlots struct {
	taken chan struct{}
	pages int // that wait or are in flight
}

func newSlots() *slots {
	return &slots{all: make(chan struct{}, pagesMax), accounts: make(map[string]*accountSlots)}
}

// take waits for a slot of an account, then for one of all accounts, each at most pageWait. The caller
// calls free once. The error is errAccountPages or errAllPages.
func (s *slots) take(ctx context.Context, accountID string) (free func(), err error) {
	own := s.join(accountID)
	if !acquire(ctx, own.taken) {
		s.leave(accountID)
		return nil, errAccountPages
	}
	if !acquire(ctx, s.all) {
		<-own.taken
		s.leave(accountID)
		return nil, errAllPages
	}
	return func() {
		<-s.all
		<-own.taken
		s.leave(accountID)
	}, nil
}

// acquire takes one of some slots. It returns false if none is free within pageWait.
func acquire(ctx context.Context, taken chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, pageWait)
	defer cancel()
	select {
	case taken <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// join returns the slots of an account and counts the caller as one of its pages.
func (s *slots) join(accountID string) *accountSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.accounts[accountID]
	if own == nil {
		own = &accountSlots{taken: make(chan struct{}, accountPagesMax)}
		s.accounts[accountID] = own
	}
	own.pages++
	return own
}

// leave ends a page of an account. An account without pages is forgotten.
func (s *slots) leave(accountID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.accounts[accountID]
	if own.pages--; own.pages == 0 {
		delete(s.accounts, accountID)
	}
}
