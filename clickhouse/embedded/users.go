package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"companyscore/internal/analyst/roster"
)

// users are the service's user, the first analyst, if it has a password, and the analysts of the roster.
type users struct {
	path   string // of the roster
	pool   *pool  // of all analysts
	guard  *analystGuard
	logger *slog.Logger

	mu      sync.Mutex
	builtIn []*user
	others  []*user
	asRead  os.FileInfo // of the roster when it was read; nil for none
}

// all returns the users. It reads the roster again if it has changed. A roster that cannot be read leaves the users as they were.
func (s *users) all() []*user {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.others, s.asRead = nil, nil
	case err != nil:
		s.logger.Error("read analysts", "err", err)
	case !unchanged(s.asRead, info):
		s.read(info)
	}
	return append(s.builtIn[:len(s.builtIn):len(s.builtIn)], s.others...)
}

// unchanged reports whether a file is as it was when it was read. Each change of the roster is a new file, and two changes
// within one tick of the clock have the same modification time.
func unchanged(read, now os.FileInfo) bool {
	return read != nil && os.SameFile(read, now) && read.Size() == now.Size() && read.ModTime().Equal(now.ModTime())
}

// read reads the roster. The caller holds s.mu.
func (s *users) read(info os.FileInfo) {
	entries, err := roster.Read(s.path)
	if err != nil {
		s.logger.Error("the analysts are as before", "err", err)
		return
	}
	s.others, s.asRead = nil, info
	for _, entry := range entries {
		hash, err := hex.DecodeString(entry.PasswordSHA256)
		if err != nil || len(hash) != sha256.Size || roster.CheckName(entry.Name) != nil {
			s.logger.Error("an analyst is left out: name or hash is invalid", "name", entry.Name, "file", s.path)
			continue
		}
		s.others = append(s.others, s.analyst(entry.Name, [sha256.Size]byte(hash), entry.Limits.OrDefault()))
	}
}

// analyst returns an analyst with limits.
func (s *users) analyst(name string, password [sha256.Size]byte, l roster.Limits) *user {
	return &user{name: name, password: password, rights: rights{roleAnalysts, initial(l)}, pool: s.pool, guard: s.guard.of(name, l)}
}
