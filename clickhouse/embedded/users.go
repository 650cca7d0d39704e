package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"companyscore/internal/analyst/roster"
)

// users are the service's user, the first analyst, if it has a password, and the analysts of the roster.
type users struct {
	pool   *pool // of all analysts
	guard  *analystGuard
	logger *slog.Logger

	mu       sync.Mutex
	builtIn  []*user
	roster   file
	others   []*user
	refused  file
	refusals []roster.Refusal
}

// file is a file that is read again when it has changed.
type file struct {
	path   string
	known  bool
	asRead os.FileInfo // nil for a missing file
	failed bool        // the last look
}

// changed reports whether the file is not as it was at the last look. Each change is a new file, and two changes within one tick of the clock have the
// same modification time. It returns an error at the first of several looks that fail.
func (f *file) changed() (bool, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = nil, nil
	}
	if err != nil {
		if f.failed {
			err = nil
		}
		f.failed = true
		return false, err
	}
	f.failed = false
	same := f.known && (info == nil) == (f.asRead == nil) &&
		(info == nil || os.SameFile(f.asRead, info) && f.asRead.Size() == info.Size() && f.asRead.ModTime().Equal(info.ModTime()))
	f.known, f.asRead = true, info
	return !same, nil
}

// all returns the users. It reads the roster again if it has changed. A roster that cannot be read leaves the users as they were.
func (s *users) all() []*user {
	s.mu.Lock()
	defer s.mu.Unlock()
	if changed, err := s.roster.changed(); err != nil {
		s.logger.Error("the analysts are as before", "err", err)
	} else if changed {
		s.read()
	}
	return append(s.builtIn[:len(s.builtIn):len(s.builtIn)], s.others...)
}

// read reads the roster. The caller holds s.mu.
func (s *users) read() {
	entries, err := roster.Read(s.roster.path)
	if err != nil {
		s.logger.Error("the analysts are as before", "err", err)
		return
	}
	s.others = nil
	for _, entry := range entries {
		hash, err := hex.DecodeString(entry.PasswordSHA256)
		if err != nil || len(hash) != sha256.Size || roster.CheckName(entry.Name) != nil {
			s.logger.Error("an analyst is left out: name or hash is invalid", "name", entry.Name, "file", s.roster.path)
			continue
		}
		s.others = append(s.others, s.analyst(entry.Name, [sha256.Size]byte(hash), entry.Limits.OrDefault()))
	}
}

// analyst returns an analyst with limits.
func (s *users) analyst(name string, password [sha256.Size]byte, l roster.Limits) *user {
	return &user{name: name, password: password, rights: rights{roleAnalysts, initial(l, s.guard.spill)}, pool: s.pool, guard: s.guard.of(name, l)}
}

// refusal returns an exception if the statements of an analyst are refused because earlier ones ended the engine.
func (s *users) refusal(name string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if changed, err := s.refused.changed(); err != nil {
		s.logger.Error("the refused analysts are as before", "err", err)
	} else if changed {
		all, err := roster.ReadRefusals(s.refused.path)
		if err != nil {
			s.logger.Error("the refused analysts are as before", "err", err)
		} else {
			s.refusals = all
		}
	}
	for _, r := range s.refusals {
		until, refused := r.InForce(now)
		if r.Name != name || !refused {
			continue
		}
		end := "until " + until.Format(time.RFC3339)
		if until.IsZero() {
			end = "until an operator runs `companyscore analyst allow " + name + "`"
		}
		return newException(codeAccessDenied, "%s: Statements are refused %s, since the engine has ended while one ran: %s. The statement began with %s",
			name, end, r.Reason, quoteString(r.Statement))
	}
	return nil
}
