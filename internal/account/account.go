// Package account defines accounts, their tiers and API keys.
//
// Only the SHA-256 of a key is stored. A key has a checksum, so a mistyped key is rejected
// without a lookup. Its prefix shows whether it is a live or a test key.
package account

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	// ErrNotFound means that the account or key does not exist.
	ErrNotFound = errors.New("no such account or key")
	// ErrRevoked means that the key was revoked.
	ErrRevoked = errors.New("key revoked")
	// ErrTooManyKeys means that the account has KeysMax valid keys.
	ErrTooManyKeys = fmt.Errorf("the account has %d valid keys, the most that it may have", KeysMax)
	// ErrMalformed means that a text is not a key: wrong prefix, length or checksum.
	ErrMalformed = errors.New("malformed key")
)

// Tier is the contract of an account. It sets the freshness window and the budgets.
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

// ParseTier returns the tier with a name, or an error that lists all names.
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

// Mode is the kind of a key: live data or sandbox.
type Mode string

// The modes of a key.
const (
	Live Mode = "live"
	Test Mode = "test"
)

// Key is a stored API key, without its text.
type Key struct {
	ID        string // UUID
	AccountID string
	Name      string
	// Prefix is the start of the key. It identifies the key in a list and is not a secret.
	Prefix     string
	Mode       Mode
	Hash       [32]byte // SHA-256 of the whole key
	CreatedAt  time.Time
	RevokedAt  time.Time // zero unless revoked
	LastUsedAt time.Time // zero if never used; up to a minute late
}
