// Package roster has the analysts of an embedded ClickHouse, in a file of its data directory. Commands change the file; the running server
// reads it again when it has changed.
package roster

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"companyscore/internal/config"
)

// Limits bound the statements of an analyst. In JSON and in Analyst zero means the default.
type Limits struct {
	MemoryBytes uint64 `json:"memory_bytes,omitempty"` // of one statement
	Seconds     uint64 `json:"seconds,omitempty"`      // of one statement
	Rows        uint64 `json:"rows,omitempty"`         // of one result
	Bytes       uint64 `json:"bytes,omitempty"`        // of one result
	Statements  int    `json:"statements,omitempty"`   // running at once
}

// Default has the limits of an analyst without limits of its own. Statements is as many as there are slots.
var Default = Limits{MemoryBytes: 2 << 30, Seconds: 300, Rows: 20_000_000, Bytes: 8 << 30, Statements: math.MaxInt32}

// OrDefault returns l with the default in place of each zero.
func (l Limits) OrDefault() Limits {
	set := func(value *uint64, otherwise uint64) {
		if *value == 0 {
			*value = otherwise
		}
	}
	set(&l.MemoryBytes, Default.MemoryBytes)
	set(&l.Seconds, Default.Seconds)
	set(&l.Rows, Default.Rows)
	set(&l.Bytes, Default.Bytes)
	if l.Statements == 0 {
		l.Statements = Default.Statements
	}
	return l
}

// Analyst is an entry of the file.
type Analyst struct {
	Name string `json:"name"`
	// PasswordSHA256 is in hex. Passwords are random, so they need no salt.
	PasswordSHA256 string    `json:"password_sha256"`
	CreatedAt      time.Time `json:"created_at"`
	Limits         Limits    `json:"limits"`
}

// Errors of Add, Remove and Allow.
var (
	ErrExists     = errors.New("there is an analyst of this name")
	ErrUnknown    = errors.New("there is no analyst of this name")
	ErrNotRefused = errors.New("the statements of no analyst of this name are refused: `companyscore analyst list` shows who is")
	ErrName       = errors.New("the name of an analyst has 1 to 64 letters, digits, _ and -, begins with a letter, and is not that of a " +
		"built-in user")
)

var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// Path returns the file of an engine with a data directory.
func Path(engine string) string { return filepath.Join(engine, "analysts.json") }

// CheckName returns ErrName if an analyst may not have the name.
func CheckName(name string) error {
	if !nameForm.MatchString(name) || slices.Contains([]string{"analyst", "analysts", "companyscore", "default", "service"}, name) {
		return ErrName
	}
	return nil
}

// Read returns the analysts in a file, by name. A missing file has none.
func Read(path string) ([]Analyst, error) { return read[Analyst](path) }

// read returns the entries of a file, none if it is missing.
func read[T any](path string) ([]T, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read analysts: %w", err)
	}
	var all []T
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read analysts in %s: %w", path, err)
	}
	return all, nil
}

// Password returns a new random password and its hash.
func Password() (password, hash string) {
	password = rand.Text()
	sum := sha256.Sum256([]byte(password))
	return password, hex.EncodeToString(sum[:])
}

// Add writes a new analyst to a file and returns its password, which is not stored.
func Add(path, name string, limits Limits, now time.Time) (password string, err error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	password, hash := Password()
	return password, change(path, func(all []Analyst) ([]Analyst, error) {
		if slices.ContainsFunc(all, func(a Analyst) bool { return a.Name == name }) {
			return nil, ErrExists
		}
		all = append(all, Analyst{Name: name, PasswordSHA256: hash, CreatedAt: now.UTC().Truncate(time.Second), Limits: limits})
		slices.SortFunc(all, func(a, b Analyst) int { return strings.Compare(a.Name, b.Name) })
		return all, nil
	})
}

// Remove removes an analyst from a file. Its statements fail from then on.
func Remove(path, name string) error {
	return change(path, func(all []Analyst) ([]Analyst, error) {
		rest := slices.DeleteFunc(slices.Clone(all), func(a Analyst) bool { return a.Name == name })
		if len(rest) == len(all) {
			return nil, ErrUnknown
		}
		return rest, nil
	})
}

// change replaces a file. Concurrent changes wait for each other.
func change[T any](path string, edit func([]T) ([]T, error)) error {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("change analysts: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("change analysts: %w", err)
	}
	all, err := read[T](path)
	if err != nil {
		return err
	}
	if all, err = edit(all); err != nil {
		return err
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := config.ReplaceFile(path, append(text, '\n')); err != nil {
		return fmt.Errorf("change analysts: %w", err)
	}
	return nil
}
