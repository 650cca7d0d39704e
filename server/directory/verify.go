// Package directory answers whom an API key belongs to.
package directory

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"companyscore/internal/account"
)

// Store keeps accounts and keys. Reads return account.ErrNotFound for what is not there.
// Its methods may be called from many goroutines.
type Store interface {
	Account(ctx context.Context, id string) (account.Account, error)
	KeyByHash(ctx context.Context, hash [32]byte) (account.Key, error)
	// TouchKeys records when keys, by id, were last used.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}

// Caller is who makes a request: an account, through one of its keys.
type Caller struct {
	Account account.Account
	KeyID   string
	Mode    account.Mode
}

const (
	freshFor   = time.Minute      // how long a verdict is used without asking again, counted from the last sign that news of keys arrives
	staleFor   = 5 * time.Minute  // how long it is used at most, also while the store does not answer
	unknownFor = 10 * time.Second // how long a key stays unknown
	verdictMax = 50_000
	touchEvery = time.Minute
	storeWait  = 3 * time.Second
)

// Directory answers who a key belongs to. Verdicts are remembered for a minute,
// and for up to five while news of keys is known to arrive or the store does not
// answer, so a revoked key stops within that time, and at once when Forget is told
// of it. It is safe for concurrent use.
type Directory struct {
	store  Store
	logger *slog.Logger
	now    func() time.Time
	flight singleflight.Group
	alive  atomic.Int64 // unix ms of the last sign that all news arrives

	mu       sync.RWMutex
	verdicts map[[32]byte]*verdict
	// changes counts what was heard of, so that a lookup that began before is not
	// remembered after.
	changes uint64
	// unwritten are last uses of keys whose verdicts are gone.
	unwritten map[string]time.Time

	stop chan struct{}
	done chan struct{}
}

type verdict struct {
	caller Caller
	err    error // nil, account.ErrNotFound or account.ErrRevoked
	at     time.Time
	// doubted has it looked up again before its time.
	doubted bool
	// usedAt is when the key was last used, in unix milliseconds; 0 when that is
	// written already.
	usedAt atomic.Int64
}

// fresh reports whether a verdict counts without another look.
func (d *Directory) fresh(v *verdict, now time.Time) bool {
	age := now.Sub(v.at)
	switch {
	case v.doubted:
		return false
	case v.err != nil:
		return age <= unknownFor
	case age <= freshFor:
		return true
	}
	return age <= staleFor && now.UnixMilli()-d.alive.Load() <= freshFor.Milliseconds()
}

// Alive notes that all news of keys and accounts that there was until now has been
// heard of.
func (d *Directory) Alive() { d.alive.Store(d.now().UnixMilli()) }

// New returns a directory over a store. Close it to have the last uses
// of keys written.
func New(store Store, logger *slog.Logger) *Directory {
	d := &Directory{
		store: store, logger: logger, now: time.Now,
		verdicts: make(map[[32]byte]*verdict), unwritten: make(map[string]time.Time),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go d.writeUses()
	return d
}

// Verify returns the caller behind a raw key. The error is account.ErrMalformed,
// account.ErrNotFound or account.ErrRevoked for a key that is no good, and another one when the
// store did not answer.
func (d *Directory) Verify(ctx context.Context, raw string) (Caller, error) {
	mode, hash, err := account.ParseKey(raw)
	if err != nil {
		return Caller{}, err
	}
	now := d.now()
	d.mu.RLock()
	v := d.verdicts[hash]
	fresh := v != nil && d.fresh(v, now)
	d.mu.RUnlock()
	if !fresh {
		asked, err := d.ask(ctx, hash, now)
		switch {
		case err == nil:
			v = asked
		case v == nil || now.Sub(v.at) > staleFor:
			return Caller{}, err
		}
	}
	if v.err != nil {
		return Caller{}, v.err
	}
	if v.caller.Mode != mode {
		return Caller{}, account.ErrNotFound
	}
	v.usedAt.Store(now.UnixMilli())
	return v.caller, nil
}

// Peek is Verify for a key whose verdict is at hand and good. It asks nobody and
// allocates nothing; when it returns nil ask Verify. The caller must not be changed.
func (d *Directory) Peek(raw []byte, now time.Time) *Caller {
	if len(raw) != account.KeyLen {
		return nil
	}
	hash := sha256.Sum256(raw)
	d.mu.RLock()
	v := d.verdicts[hash]
	good := v != nil && v.err == nil && d.fresh(v, now)
	d.mu.RUnlock()
	if !good {
		return nil
	}
	v.usedAt.Store(now.UnixMilli())
	return &v.caller
}

// ask looks a key up and remembers the verdict. One lookup serves all who wait
// for the same key; it does not end when the first of them goes away.
func (d *Directory) ask(ctx context.Context, hash [32]byte, now time.Time) (*verdict, error) {
	ch := d.flight.DoChan(string(hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
		defer cancel()
		d.mu.RLock()
		before := d.changes
		d.mu.RUnlock()
		v, err := d.lookUp(ctx, hash)
		if err != nil {
			return nil, fmt.Errorf("look up API key: %w", err)
		}
		v.at = now
		d.remember(hash, v, before)
		return v, nil
	})
	select {
	case r := <-ch:
		v, _ := r.Val.(*verdict)
		return v, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *Directory) lookUp(ctx context.Context, hash [32]byte) (*verdict, error) {
	key, err := d.store.KeyByHash(ctx, hash)
	if errors.Is(err, account.ErrNotFound) {
		return &verdict{err: account.ErrNotFound}, nil
	}
	if err != nil {
		return nil, err
	}
	if !key.RevokedAt.IsZero() {
		return &verdict{err: account.ErrRevoked}, nil
	}
	acct, err := d.store.Account(ctx, key.AccountID)
	if err != nil {
		return nil, err
	}
	return &verdict{caller: Caller{Account: acct, KeyID: key.ID, Mode: key.Mode}}, nil
}

// Forget has a key looked up again, given by the SHA-256 of it.
func (d *Directory) Forget(hash [32]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	d.drop(hash)
}

// ForgetAccount has all keys of an account looked up again.
func (d *Directory) ForgetAccount(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	for hash, v := range d.verdicts {
		if v.caller.Account.ID == id {
			d.drop(hash)
		}
	}
}

// Doubt has every key looked up again that is used, while verdicts at hand serve
// if the store does not answer.
func (d *Directory) Doubt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	for _, v := range d.verdicts {
		v.doubted = true
	}
}

// remember keeps a verdict unless something was changed since it was asked for.
func (d *Directory) remember(hash [32]byte, v *verdict, changes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changes != changes {
		return
	}
	if len(d.verdicts) >= verdictMax {
		// Map order is random: this drops some entry, which costs one lookup.
		for h := range d.verdicts {
			d.drop(h)
			break
		}
	}
	d.drop(hash)
	d.verdicts[hash] = v
}

// drop forgets a verdict but not when its key was used. The lock must be held.
func (d *Directory) drop(hash [32]byte) {
	if v := d.verdicts[hash]; v != nil && v.usedAt.Load() != 0 {
		d.unwritten[v.caller.KeyID] = time.UnixMilli(v.usedAt.Load())
	}
	delete(d.verdicts, hash)
}

func (d *Directory) writeUses() {
	defer close(d.done)
	tick := time.NewTicker(touchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.flushUses()
		case <-d.stop:
			d.flushUses()
			return
		}
	}
}

func (d *Directory) flushUses() {
	d.mu.Lock()
	used := d.unwritten
	d.unwritten = make(map[string]time.Time)
	for _, v := range d.verdicts {
		if at := v.usedAt.Swap(0); at != 0 {
			used[v.caller.KeyID] = time.UnixMilli(at)
		}
	}
	d.mu.Unlock()
	if len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	if err := d.store.TouchKeys(ctx, used); err != nil {
		d.logger.Warn("last uses of keys not written", "keys", len(used), "err", err)
	}
}

// Close writes the last uses of keys and ends the directory's goroutine.
func (d *Directory) Close() {
	close(d.stop)
	<-d.done
}
