package keys

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"time"

	"companyscore/internal/account"
)

// memory is a Store in a map that can be told to be down.
type memory struct {
	keys    map[[32]byte]account.Key
	down    bool
	asked   int
	touched map[string]time.Time
}

var errDown = errors.New("store is down")

func (m *memory) Account(_ context.Context, id string) (account.Account, error) {
	return account.Account{ID: id, Plan: account.Starter}, nil
}

func (m *memory) KeyByHash(_ context.Context, hash [32]byte) (account.Key, error) {
	m.asked++
	if m.down {
		return account.Key{}, errDown
	}
	key, ok := m.keys[hash]
	if !ok {
		return account.Key{}, account.ErrNotFound
	}
	return key, nil
}

func (m *memory) TouchKeys(_ context.Context, used map[string]time.Time) error {
	if m.down {
		return errDown
	}
	m.touched = used
	return nil
}

func TestDirectoryLifeOfAVerdict(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	key, raw := account.NewKey("acct", "", account.Live, start)
	_, other := account.NewKey("acct", "", account.Live, start)
	store := &memory{keys: map[[32]byte]account.Key{key.Hash: key}}
	d := New(store, slog.New(slog.DiscardHandler))
	now := start
	d.now = func() time.Time { return now }

	step := func(name, raw string, want error, asked int) {
		t.Helper()
		before := store.asked
		if _, err := d.Verify(t.Context(), raw); !errors.Is(err, want) {
			t.Errorf("%s: Verify = %v, want %v", name, err, want)
		}
		if got := store.asked - before; got != asked {
			t.Errorf("%s: asked the store %d times, want %d", name, got, asked)
		}
	}
	step("first use", raw, nil, 1)
	step("second use", raw, nil, 0)
	step("mistyped", raw[:len(raw)-1]+"?", account.ErrMalformed, 0)
	step("never issued", other, account.ErrNotFound, 1)
	step("never issued, again", other, account.ErrNotFound, 0)

	store.down = true
	now = now.Add(freshFor + time.Second)
	step("store down, verdict not too old", raw, nil, 1)
	now = start.Add(staleFor + time.Second)
	step("store down for too long", raw, errDown, 1)

	store.down = false
	key.RevokedAt = now
	store.keys[key.Hash] = key
	step("revoked", raw, account.ErrRevoked, 1)

	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if store.touched[key.ID].IsZero() {
		t.Error("the last use of the key was not written")
	}
}

func TestLastUsesOutlastAnOutage(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	first, firstRaw := account.NewKey("acct", "", account.Live, now)
	second, secondRaw := account.NewKey("acct", "", account.Live, now)
	store := &memory{keys: map[[32]byte]account.Key{first.Hash: first, second.Hash: second}}
	d := New(store, slog.New(slog.DiscardHandler))
	d.now = func() time.Time { return now }
	use := func(raw string) {
		t.Helper()
		now = now.Add(time.Second)
		if _, err := d.Verify(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
	}
	use(firstRaw)
	use(secondRaw)
	store.down = true
	for range 2 {
		if err := d.writeUses(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("writeUses = %v, want %v", err, errDown)
		}
	}
	use(firstRaw)
	store.down = false
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if want := map[string]time.Time{first.ID: now, second.ID: now.Add(-time.Second)}; !maps.Equal(store.touched, want) {
		t.Errorf("wrote %v, want %v", store.touched, want)
	}
}

func TestVerdictLastsAtMostFiveMinutes(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	key, raw := account.NewKey("acct", "", account.Live, now)
	store := &memory{keys: map[[32]byte]account.Key{key.Hash: key}}
	d := New(store, slog.New(slog.DiscardHandler))
	defer d.Close(t.Context())
	d.now = func() time.Time { return now }
	asks := func(want int) {
		t.Helper()
		known := d.Peek([]byte(raw), now) != nil
		before := store.asked
		if _, err := d.Verify(t.Context(), raw); err != nil || store.asked != want || known != (before == want) {
			t.Errorf("after %s: asked %d times, want %d (%v)", now.Sub(time.Unix(1_700_000_000, 0)), store.asked, want, err)
		}
	}
	asks(1)
	for now.Sub(time.Unix(1_700_000_000, 0)) < staleFor {
		d.Alive()
		now = now.Add(freshFor / 2)
		asks(1)
	}
	d.Alive()
	now = now.Add(time.Second)
	asks(2) // older than staleFor
	now = now.Add(freshFor + time.Second)
	asks(3) // no sign for longer than freshFor
	d.Alive()
	d.Doubt()
	asks(4)
}

func TestWhatChangedIsLookedUpAgain(t *testing.T) {
	t.Parallel()
	key, raw := account.NewKey("account", "", account.Live, time.Now())
	store := &memory{keys: map[[32]byte]account.Key{key.Hash: key}}
	d := New(store, slog.New(slog.DiscardHandler))
	defer d.Close(t.Context())
	verify := func() error { _, err := d.Verify(t.Context(), raw); return err }
	if err := errors.Join(verify(), verify()); err != nil || store.asked != 1 {
		t.Fatalf("asked %d times, %v", store.asked, err)
	}
	d.ForgetAccount("another")
	if err := verify(); err != nil || store.asked != 1 {
		t.Errorf("another account's change: asked %d times, %v", store.asked, err)
	}
	d.ForgetAccount("account")
	if err := verify(); err != nil || store.asked != 2 {
		t.Errorf("its account's change: asked %d times, %v", store.asked, err)
	}
	d.Doubt()
	if err := errors.Join(verify(), verify()); err != nil || store.asked != 3 {
		t.Errorf("doubt: asked %d times, %v", store.asked, err)
	}
	d.Doubt()
	store.down = true
	if err := verify(); err != nil {
		t.Errorf("doubt while the store is away: %v", err)
	}
	store.down = false
	key.RevokedAt = time.Now()
	store.keys[key.Hash] = key
	d.Forget(key.Hash)
	if err := verify(); !errors.Is(err, account.ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
}
