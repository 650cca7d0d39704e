// Package keys is the cache of API keys: it maps a key to its account.
package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"companyscore/internal/account"
	"companyscore/internal/flush"
)

// Store reads accounts and keys. Reads return account.ErrNotFound if the account or key
// does not exist. Implementations must be safe for concurrent use.
type Store interface {
	Account(ctx context.Context, id string) (account.Account, error)
	KeyByHash(ctx context.Context, hash [32]byte) (account.Key, error)
	// TouchKeys writes the last use of keys, by key id.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}

// Caller is the account and the key of a request.
type Caller struct {
	Account account.Account
	KeyID   string
	Mode    account.Mode
}

const (
	freshFor   = time.Minute      // lifetime of a verdict, counted from its lookup or from the last call of Alive
	staleFor   = 5 * time.Minute  // maximum lifetime of a verdict, also while the store does not answer
	unknownFor = 10 * time.Second // lifetime of the verdict that a key is unknown or revoked
	verdictMax = 50_000
	touchEvery = time.Minute
	storeWait  = 3 * time.Second
)

// Directory returns the caller of a key. It caches verdicts for one minute, and for up to
// five minutes while Alive is called or the store does not answer. A revoked key is
// rejected within that time, and at once after Forget. Directory is safe for concurrent
// use.
type Directory struct {
	store  Store
	now    func() time.Time
	flight singleflight.Group
	alive  atomic.Int64 // unix ms of the last call of Alive

	mu       sync.RWMutex
	verdicts map[[32]byte]*verdict
	// changes counts calls of Forget, ForgetAccount and Doubt. A lookup that began before
	// such a call is not cached.
	changes uint64
	// unwritten holds the last uses of keys whose verdicts were dropped or whose write failed, by key id.
	unwritten map[string]time.Time

	uses *flush.Loop // writes the last uses of keys
}

type verdict struct {
	caller Caller
	err    error // nil, account.ErrNotFound or account.ErrRevoked
	at     time.Time
	// doubted makes the next use look the key up again.
	doubted bool
	// usedAt is the last use of the key in unix ms, 0 if there is nothing to write.
	usedAt atomic.Int64
}

// fresh reports whether a verdict can be used without a lookup.
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

// Alive records that no change of a key or an account was missed until now.
func (d *Directory) Alive() { d.alive.Store(d.now().UnixMilli()) }

// New returns a directory over a store, which writes the last uses of keys once a minute. The caller must call Close.
func New(store Store, logger *slog.Logger) *Directory {
	d := &Directory{
		store: store, now: time.Now,
		verdicts: make(map[[32]byte]*verdict), unwritten: make(map[string]time.Time),
	}
	d.uses = flush.Start(flush.Config{
		Interval: touchEvery, Timeout: storeWait, Trouble: "last uses of keys not written yet", Logger: logger,
	}, d.writeUses)
	return d
}

// Verify returns the caller of a raw key. The error is account.ErrMalformed,
// account.ErrNotFound or account.ErrRevoked if the key is not valid. Any other error means
// that the store did not answer or that ctx ended.
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

// Peek returns the caller of a raw key if a fresh, valid verdict is in memory. It makes no
// lookup and allocates nothing. If it returns nil, call Verify. It does not compare the
// mode of the key. The result must not be modified.
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

// ask looks a key up in the store and caches the verdict. Concurrent calls for one key
// share a lookup. The lookup does not end with ctx.
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

// Forget drops the verdict of a key, given by its SHA-256. The next use looks it up again.
func (d *Directory) Forget(hash [32]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	d.drop(hash)
}

// ForgetAccount drops the verdicts of all keys of an account.
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

// Doubt makes the next use of every key look it up again. If the store does not answer,
// Verify still uses the cached verdict.
func (d *Directory) Doubt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	for _, v := range d.verdicts {
		v.doubted = true
	}
}

// remember caches a verdict unless d.changes differs from its value before the lookup.
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

// drop removes a verdict and keeps its last use for the next write. It requires d.mu.
func (d *Directory) drop(hash [32]byte) {
	if v := d.verdicts[hash]; v != nil && v.usedAt.Load() != 0 {
		d.unwritten[v.caller.KeyID] = time.UnixMilli(v.usedAt.Load())
	}
	delete(d.verdicts, hash)
}

// writeUses writes the last uses of keys. If the write fails, those of up to verdictMax keys wait for the next one.
func (d *Directory) writeUses(ctx context.Context) error {
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
		return nil
	}
	err := d.store.TouchKeys(ctx, used)
	if err != nil && len(used) <= verdictMax {
		d.mu.Lock()
		defer d.mu.Unlock()
		maps.Copy(used, d.unwritten) // which are later
		d.unwritten = used
	}
	return err
}

// Close stops the directory and writes the last uses of keys, unless ctx ends first.
func (d *Directory) Close(ctx context.Context) error { return d.uses.Close(ctx) }
