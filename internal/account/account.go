// Package account has the types of customers: accounts, their tiers, their API keys
// and what they used.
//
// Keys are stored as SHA-256 only. A key carries a checksum, so a mistyped key is
// refused without a lookup. Its prefix tells a live key from a test key.
package account

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	// ErrNotFound says that there is no such account or key.
	ErrNotFound = errors.New("no such account or key")
	// ErrRevoked says that the key existed and was revoked.
	ErrRevoked = errors.New("key revoked")
	// ErrMalformed says that a text cannot be a key: wrong prefix, length or checksum.
	ErrMalformed = errors.New("malformed key")
)

// Tier is the plan of an account. It decides freshness windows and budgets.
type Tier string

// The tiers, smallest first.
const (
	Free       Tier = "free"
	Starter    Tier = "starter"
	Growth     Tier = "growth"
	Scale      Tier = "scale"
	Enterprise Tier = "enterprise"
)

// Tiers lists all tiers, smallest first.
var Tiers = []Tier{Free, Starter, Growth, Scale, Enterprise}

// ParseTier returns the tier of that name, or an error that lists all names.
func ParseTier(name string) (Tier, error) {
	if t := Tier(name); slices.Contains(Tiers, t) {
		return t, nil
	}
	names := make([]string, len(Tiers))
	for i, t := range Tiers {
		names[i] = string(t)
	}
	return "", fmt.Errorf("unknown tier %q: use one of %s", name, strings.Join(names, ", "))
}

// Account is one customer. Jobs and usage belong to an account, not to a key.
type Account struct {
	ID        string // UUID
	Name      string
	Tier      Tier
	CreatedAt time.Time
}

// Mode says whether a key reaches live data or the sandbox.
type Mode string

// The modes of a key.
const (
	Live Mode = "live"
	Test Mode = "test"
)

// Key is an API key as it is stored: everything but the key itself.
type Key struct {
	ID        string // UUID
	AccountID string
	Name      string
	// Prefix is the public beginning of the key, enough to recognise it in a list.
	Prefix     string
	Mode       Mode
	Hash       [32]byte // SHA-256 of the whole key
	CreatedAt  time.Time
	RevokedAt  time.Time // zero while the key is good
	LastUsedAt time.Time // zero when never used; may lag by a minute
}
