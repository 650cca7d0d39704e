package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Store keeps accounts and keys. Reads return ErrNotFound for what is not there.
// Its methods may be called from many goroutines.
type Store interface {
	Account(ctx context.Context, id string) (Account, error)
	KeyByHash(ctx context.Context, hash [32]byte) (Key, error)
	// TouchKeys records when keys, by id, were last used.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}

// Caller is who makes a request: an account, through one of its keys.
type Caller struct {
	Account Account
	KeyID   string
	Mode    Mode
}

const (
	freshFor   = time.Minute      // how long a verdict is used without asking again
	staleFor   = 5 * time.Minute  // how long it is used while the store does not answer
	unknownFor = 10 * time.Second // how long a key stays unknown
	verdictMax = 50_000
	touchEvery = time.Minute
	storeWait  = 3 * time.Second
)

// Directory answers who a key belongs to. Verdicts are remembered for a minute,
// and for up to five while the store does not answer, so a revoked key stops
// within that time, and at once when Forget is told of it. It is safe for
// concurrent use.
type Directory struct {
	store  Store
	logger *slog.Logger
	now    func() time.Time
	flight singleflight.Group

	mu       sync.RWMutex
	verdicts map[[32]byte]verdict
	// changes counts what was heard of, so that a lookup that began before is not
	// remembered after.
	changes uint64

	usedMu sync.Mutex
	used   map[string]time.Time

	stop chan struct{}
	done chan struct{}
}

type verdict struct {
	caller Caller
	err    error // nil, ErrNotFound or ErrRevoked
	at     time.Time
	// doubted has it looked up again before its time.
	doubted bool
}

// NewDirectory returns a directory over a store. Close it to have the last uses
// of keys written.
func NewDirectory(store Store, logger *slog.Logger) *Directory {
	d := &Directory{
		store: store, logger: logger, now: time.Now,
		verdicts: make(map[[32]byte]verdict), used: make(map[string]time.Time),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go d.writeUses()
	return d
}

// Verify returns the caller behind a raw key. The error is ErrMalformed,
// ErrNotFound or ErrRevoked for a key that is no good, and another one when the
// store did not answer.
func (d *Directory) Verify(ctx context.Context, raw string) (Caller, error) {
	mode, hash, err := ParseKey(raw)
	if err != nil {
		return Caller{}, err
	}
	now := d.now()
	d.mu.RLock()
	v, known := d.verdicts[hash]
	d.mu.RUnlock()
	life := freshFor
	if v.err != nil {
		life = unknownFor
	}
	if age := now.Sub(v.at); !known || age > life || v.doubted {
		asked, err := d.ask(ctx, hash, now)
		switch {
		case err == nil:
			v = asked
		case !known || age > staleFor:
			return Caller{}, err
		}
	}
	if v.err != nil {
		return Caller{}, v.err
	}
	if v.caller.Mode != mode {
		return Caller{}, ErrNotFound
	}
	d.usedMu.Lock()
	d.used[v.caller.KeyID] = now
	d.usedMu.Unlock()
	return v.caller, nil
}

// ask looks a key up and remembers the verdict. One lookup serves all who wait
// for the same key; it does not end when the first of them goes away.
func (d *Directory) ask(ctx context.Context, hash [32]byte, now time.Time) (verdict, error) {
	ch := d.flight.DoChan(string(hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
		defer cancel()
		d.mu.RLock()
		before := d.changes
		d.mu.RUnlock()
		v, err := d.lookUp(ctx, hash)
		if err != nil {
			return verdict{}, fmt.Errorf("look up API key: %w", err)
		}
		v.at = now
		d.remember(hash, v, before)
		return v, nil
	})
	select {
	case r := <-ch:
		return r.Val.(verdict), r.Err
	case <-ctx.Done():
		return verdict{}, ctx.Err()
	}
}

func (d *Directory) lookUp(ctx context.Context, hash [32]byte) (verdict, error) {
	key, err := d.store.KeyByHash(ctx, hash)
	if errors.Is(err, ErrNotFound) {
		return verdict{err: ErrNotFound}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	if !key.RevokedAt.IsZero() {
		return verdict{err: ErrRevoked}, nil
	}
	acct, err := d.store.Account(ctx, key.AccountID)
	if err != nil {
		return verdict{}, err
	}
	return verdict{caller: Caller{Account: acct, KeyID: key.ID, Mode: key.Mode}}, nil
}

// Forget has a key looked up again, given by the SHA-256 of it.
func (d *Directory) Forget(hash [32]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	delete(d.verdicts, hash)
}

// ForgetAccount has all keys of an account looked up again.
func (d *Directory) ForgetAccount(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	for hash, v := range d.verdicts {
		if v.caller.Account.ID == id {
			delete(d.verdicts, hash)
		}
	}
}

// Doubt has every key looked up again that is used, while verdicts at hand serve
// if the store does not answer.
func (d *Directory) Doubt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	for hash, v := range d.verdicts {
		v.doubted = true
		d.verdicts[hash] = v
	}
}

// remember keeps a verdict unless something was changed since it was asked for.
func (d *Directory) remember(hash [32]byte, v verdict, changes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changes != changes {
		return
	}
	if len(d.verdicts) >= verdictMax {
		// Map order is random: this drops some entry, which costs one lookup.
		for h := range d.verdicts {
			delete(d.verdicts, h)
			break
		}
	}
	d.verdicts[hash] = v
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
	d.usedMu.Lock()
	used := d.used
	d.used = make(map[string]time.Time)
	d.usedMu.Unlock()
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
