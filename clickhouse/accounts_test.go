package clickhouse_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/internal/account"
)

func TestAccountsComeBackAndChange(t *testing.T) {
	t.Parallel()
	accounts := clickhouse.NewAccounts(open(t))
	one := account.Account{ID: "1", Name: "O'Neil \\ Söhne\n", Plan: account.Free, CreatedAt: noon}
	two := account.Account{ID: "2", Name: "Two", Plan: account.Scale, CreatedAt: noon.Add(-time.Hour)}
	for _, a := range []account.Account{one, two} {
		if err := accounts.Put(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	one.Plan = account.Enterprise
	if err := accounts.Put(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	got, err := accounts.Account(t.Context(), "1")
	if diff := cmp.Diff(one, got); err != nil || diff != "" {
		t.Errorf("account: %v\n%s", err, diff)
	}
	all, err := accounts.List(t.Context())
	if diff := cmp.Diff([]account.Account{two, one}, all); err != nil || diff != "" {
		t.Errorf("accounts, oldest first: %v\n%s", err, diff)
	}
	if _, err := accounts.Account(t.Context(), "3"); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("unknown account: %v, want ErrNotFound", err)
	}
	if err := accounts.Put(t.Context(), account.Account{ID: "4", Plan: "gold", CreatedAt: noon}); err == nil {
		t.Error("an account of an unknown tier was stored")
	}
}

func TestRevokedKeyStaysRevoked(t *testing.T) {
	t.Parallel()
	db := open(t)
	accounts := clickhouse.NewAccounts(db)
	key := account.Key{
		ID: "k1", AccountID: "a1", Name: "main", Prefix: "svc_live_abcd", Mode: account.Live,
		Hash: sha256.Sum256([]byte("secret")), CreatedAt: noon,
	}
	revoked := key
	revoked.RevokedAt = noon.Add(time.Hour)
	steps := []struct {
		name string
		key  account.Key
		want time.Time
	}{
		{"created", key, time.Time{}},
		{"revoked", revoked, revoked.RevokedAt},
		{"created again by a replay", key, revoked.RevokedAt},
	}
	for _, step := range steps {
		if err := accounts.PutKey(t.Context(), step.key); err != nil {
			t.Fatal(err)
		}
		for range 2 { // before and after a merge
			want := key
			want.RevokedAt = step.want
			byHash, err := accounts.KeyByHash(t.Context(), key.Hash)
			if diff := cmp.Diff(want, byHash); err != nil || diff != "" {
				t.Errorf("%s, by hash: %v\n%s", step.name, err, diff)
			}
			byID, err := accounts.Key(t.Context(), "k1")
			if diff := cmp.Diff(want, byID); err != nil || diff != "" {
				t.Errorf("%s, by id: %v\n%s", step.name, err, diff)
			}
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := accounts.KeyByHash(t.Context(), sha256.Sum256([]byte("other"))); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("unknown hash: %v, want ErrNotFound", err)
	}
	if _, err := accounts.Key(t.Context(), "k2"); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("unknown id: %v, want ErrNotFound", err)
	}
}

func TestKeysAreListedWithLastUse(t *testing.T) {
	t.Parallel()
	accounts := clickhouse.NewAccounts(open(t))
	for i, id := range []string{"b", "a", "c"} {
		key := account.Key{ID: id, AccountID: "acct-" + id[:1], Mode: account.Test, Hash: sha256.Sum256([]byte(id)),
			CreatedAt: noon.Add(time.Duration(i) * time.Minute)}
		if id == "c" {
			key.AccountID = "acct-a"
		}
		if err := accounts.PutKey(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []time.Time{noon.Add(time.Hour), noon} { // the older time is written later
		if err := accounts.TouchKeys(t.Context(), map[string]time.Time{"a": at, "gone": at}); err != nil {
			t.Fatal(err)
		}
	}
	if err := accounts.TouchKeys(t.Context(), nil); err != nil {
		t.Errorf("noting no use: %v", err)
	}
	ids := func(accountID string) (ids []string) {
		t.Helper()
		keys, err := accounts.Keys(t.Context(), accountID)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			ids = append(ids, k.ID)
			want := time.Time{}
			if k.ID == "a" {
				want = noon.Add(time.Hour)
			}
			if !k.LastUsedAt.Equal(want) {
				t.Errorf("key %s was last used %v, want %v", k.ID, k.LastUsedAt, want)
			}
		}
		return ids
	}
	if diff := cmp.Diff([]string{"a", "c"}, ids("acct-a")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, ids("")); diff != "" {
		t.Error(diff)
	}
}
