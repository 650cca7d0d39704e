// Package account defines accounts, their plans and API keys. The API, the command line and the tables call a plan a tier.
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

// Plan is the contract of an account. It sets the freshness window and the budgets.
type Plan string

// The plans, smallest first.
const (
	Free       Plan = "free"
	Starter    Plan = "starter"
	Growth     Plan = "growth"
	Scale      Plan = "scale"
	Enterprise Plan = "enterprise"
)

// Plans lists all plans, smallest first.
var Plans = []Plan{Free, Starter, Growth, Scale, Enterprise}

// ParsePlan returns the plan with a name, or an error that lists all names.
func ParsePlan(name string) (Plan, error) {
	if t := Plan(name); slices.Contains(Plans, t) {
		return t, nil
	}
	names := make([]string, len(Plans))
	for i, t := range Plans {
		names[i] = string(t)
	}
	return "", fmt.Errorf("unknown tier %q: use one of %s", name, strings.Join(names, ", "))
}

// Account is one customer. Jobs and usage belong to an account, not to a key.
type Account struct {
	ID        string // UUID
	Name      string
	Plan      Plan
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
