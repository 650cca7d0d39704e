package console

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/table"
)

// nameMax bounds the name of a key, in characters.
const nameMax = 60

// KeyStore has what the pages of keys read and write.
type KeyStore interface {
	Key(ctx context.Context, id string) (account.Key, error)
	// Keys returns the keys of an account, oldest first.
	Keys(ctx context.Context, accountID string) ([]account.Key, error)
	PutKey(ctx context.Context, keys ...account.Key) error
}

// keysBody is the page of the keys of an account.
type keysBody struct {
	Keys []account.Key // newest first
	Name string        // of the form
	Mode account.Mode  // of the form
	// Created is the key that was just made, and Raw its text, which is shown once.
	Created *account.Key
	Raw     string
	Fault   string // why the form was refused
}

func (c *Console) keys(v *visit) error {
	return c.showKeys(v, keysBody{Mode: account.Live})
}

func (c *Console) showKeys(v *visit, body keysBody) (err error) {
	if body.Keys, err = c.Stores.Keys.Keys(v.ctx(), v.account.ID); err != nil {
		return err
	}
	slices.Reverse(body.Keys)
	return v.render("keys", "API keys", "keys", body)
}

// createKey makes a key and shows its text in the answer. The text is not stored, so a redirect
// could not show it.
func (c *Console) createKey(v *visit) error {
	name := strings.TrimSpace(v.r.PostFormValue("name"))
	mode := account.Mode(v.r.PostFormValue("mode"))
	switch {
	case mode != account.Live && mode != account.Test:
		return errForm
	case name == "" || utf8.RuneCountInString(name) > nameMax || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		v.status = errForm.Status
		return c.showKeys(v,
			keysBody{Name: name, Mode: mode, Fault: "Give the key a name of 1 to 60 characters, such as the program that will use it."})
	}
	keys, err := c.Stores.Keys.Keys(v.ctx(), v.account.ID)
	if err != nil {
		return err
	}
	if err := account.CheckRoom(keys); err != nil {
		v.status = http.StatusConflict
		return c.showKeys(v, keysBody{Name: name, Mode: mode,
			Fault: fmt.Sprintf("This account has %d keys, the most that it may have. Revoke one that is not used.", account.KeysMax)})
	}
	key, raw := account.NewKey(v.account.ID, name, mode, c.now())
	if err := v.audit(table.KeyCreated, key.ID, string(mode)+" "+name); err != nil {
		return err
	}
	if err := c.Stores.Keys.PutKey(v.ctx(), key); err != nil {
		return err
	}
	return c.showKeys(v, keysBody{Mode: account.Live, Created: &key, Raw: raw})
}

// key returns a key that the session may change: one of its account, or any for an operator.
func (c *Console) key(v *visit) (account.Key, error) {
	key, err := c.Stores.Keys.Key(v.ctx(), v.r.PathValue("id"))
	if err == nil && key.AccountID != v.account.ID && !v.session.Operator {
		err = account.ErrNotFound
	}
	return key, err
}

func (c *Console) confirmRevoke(v *visit) error {
	key, err := c.key(v)
	if err != nil {
		return err
	}
	return v.render("revoke", "Revoke a key", "keys", key)
}

func (c *Console) revokeKey(v *visit) error {
	key, err := c.key(v)
	if err != nil {
		return err
	}
	if key.RevokedAt.IsZero() {
		if err := v.audit(table.KeyRevoked, key.ID, key.Name); err != nil {
			return err
		}
		key.RevokedAt = c.now()
		if err := c.Stores.Keys.PutKey(v.ctx(), key); err != nil {
			return err
		}
		if err := redis.Announce(v.ctx(), c.Redis, redis.KeyChanged, hex.EncodeToString(key.Hash[:])); err != nil {
			c.Logger.Warn("revocation not announced to servers", "err", err) // they apply it within five minutes
		}
	}
	if key.AccountID != v.account.ID {
		return v.redirect("/operators/keys")
	}
	return v.redirect("/keys")
}
