package clickhouse

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/account"
	"companyscore/sql"
)

var (
	accountInsert = sql.Query("account_insert")
	accountGet    = sql.Query("account_get")
	accountList   = sql.Query("account_list")
	keyInsert     = sql.Query("key_insert")
	keyByHash     = sql.Query("key_by_hash")
	keyByID       = sql.Query("key_by_id")
	keyList       = sql.Query("key_list")
	keyUseInsert  = sql.Query("key_use_insert")
)

// Accounts stores accounts and keys. It is safe for concurrent use. Reads of a missing
// account or key return an error that wraps account.ErrNotFound.
type Accounts struct{ db *DB }

// NewAccounts returns the store of accounts in db.
func NewAccounts(db *DB) *Accounts { return &Accounts{db} }

type accountRow struct {
	ID        string    `ch:"id"`
	Name      string    `ch:"name"`
	Tier      string    `ch:"tier"`
	CreatedAt time.Time `ch:"created_at"`
}

func (r accountRow) account() account.Account {
	return account.Account{ID: r.ID, Name: r.Name, Plan: account.Plan(r.Tier), CreatedAt: r.CreatedAt.UTC()}
}

// Put writes new and changed accounts with one insert: all of them or none.
func (a *Accounts) Put(ctx context.Context, accounts ...account.Account) error {
	type row struct {
		accountRow
		UpdatedAt time.Time `ch:"updated_at"`
	}
	now, rows := time.Now(), make([]*row, len(accounts))
	for i, acct := range accounts {
		rows[i] = &row{accountRow{acct.ID, acct.Name, string(acct.Plan), acct.CreatedAt}, now}
	}
	if err := insert(ctx, a.db, accountInsert, rows); err != nil {
		return fmt.Errorf("write account: %w", err)
	}
	return nil
}

// Account returns one account.
func (a *Accounts) Account(ctx context.Context, id string) (account.Account, error) {
	var row accountRow
	found, err := a.db.first(ctx, &row, accountGet, ch.Named("id", id))
	if err == nil && !found {
		err = account.ErrNotFound
	}
	if err != nil {
		return account.Account{}, fmt.Errorf("read account %s: %w", id, err)
	}
	return row.account(), nil
}

// List returns all accounts, oldest first.
func (a *Accounts) List(ctx context.Context) ([]account.Account, error) {
	var rows []accountRow
	if err := a.db.list(ctx, &rows, accountList); err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	accounts := make([]account.Account, len(rows))
	for i, row := range rows {
		accounts[i] = row.account()
	}
	return accounts, nil
}

type keyRow struct {
	ID        string    `ch:"id"`
	AccountID string    `ch:"account_id"`
	Name      string    `ch:"name"`
	Prefix    string    `ch:"prefix"`
	Mode      string    `ch:"mode"`
	Hash      string    `ch:"hash"`
	CreatedAt time.Time `ch:"created_at"`
	RevokedAt time.Time `ch:"revoked_at"`
}

func (r keyRow) key() (account.Key, error) {
	key := account.Key{
		ID: r.ID, AccountID: r.AccountID, Name: r.Name, Prefix: r.Prefix, Mode: account.Mode(r.Mode),
		CreatedAt: r.CreatedAt.UTC(), RevokedAt: fromColumn(r.RevokedAt),
	}
	if _, err := hex.Decode(key.Hash[:], []byte(r.Hash)); err != nil {
		return account.Key{}, fmt.Errorf("hash of key %s: %w", r.ID, err)
	}
	return key, nil
}

// PutKey writes new and revoked keys with one insert: all of them or none. A revoked key
// stays revoked.
func (a *Accounts) PutKey(ctx context.Context, keys ...account.Key) error {
	rows := make([]*keyRow, len(keys))
	for i, key := range keys {
		rows[i] = &keyRow{
			ID: key.ID, AccountID: key.AccountID, Name: key.Name, Prefix: key.Prefix, Mode: string(key.Mode),
			Hash: hex.EncodeToString(key.Hash[:]), CreatedAt: key.CreatedAt, RevokedAt: toColumn(key.RevokedAt),
		}
	}
	if err := insert(ctx, a.db, keyInsert, rows); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

// KeyByHash returns the key with a SHA-256 hash.
func (a *Accounts) KeyByHash(ctx context.Context, hash [32]byte) (account.Key, error) {
	return a.key(ctx, keyByHash, ch.Named("hash", hex.EncodeToString(hash[:])))
}

// Key returns the key with an id.
func (a *Accounts) Key(ctx context.Context, id string) (account.Key, error) {
	return a.key(ctx, keyByID, ch.Named("id", id))
}

func (a *Accounts) key(ctx context.Context, query string, arg any) (account.Key, error) {
	var row keyRow
	found, err := a.db.first(ctx, &row, query, arg)
	if err == nil && !found {
		err = account.ErrNotFound
	}
	if err != nil {
		return account.Key{}, fmt.Errorf("read key: %w", err)
	}
	return row.key()
}

// Keys returns the keys of an account with the time of their last use, oldest first. An
// empty id selects the keys of all accounts.
func (a *Accounts) Keys(ctx context.Context, accountID string) ([]account.Key, error) {
	var rows []struct {
		keyRow
		LastUsedAt time.Time `ch:"last_used_at"`
	}
	if err := a.db.list(ctx, &rows, keyList, ch.Named("account_id", accountID)); err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	keys := make([]account.Key, len(rows))
	for i, row := range rows {
		key, err := row.key()
		if err != nil {
			return nil, err
		}
		key.LastUsedAt = fromColumn(row.LastUsedAt)
		keys[i] = key
	}
	return keys, nil
}

// TouchKeys writes the time of the last use per key id.
func (a *Accounts) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	type useRow struct {
		KeyID      string    `ch:"key_id"`
		LastUsedAt time.Time `ch:"last_used_at"`
	}
	rows := make([]*useRow, 0, len(used))
	for id, at := range used {
		rows = append(rows, &useRow{id, at})
	}
	if err := insert(ctx, a.db, keyUseInsert, rows); err != nil {
		return fmt.Errorf("write uses of keys: %w", err)
	}
	return nil
}
