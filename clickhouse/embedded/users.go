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
	path   string // of the roster
	pool   *pool  // of all analysts
	guard  *analystGuard
	logger *slog.Logger

	mu      sync.Mutex
	builtIn []*user
	others  []*user
	readAt  time.Time // modification time of the roster when it was read
}

// all returns the users. It reads the roster again if it has changed. A roster that cannot be read leaves the users as they were.
func (s *users) all() []*user {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.others, s.readAt = nil, time.Time{}
	case err != nil:
		s.logger.Error("read analysts", "err", err)
	case !info.ModTime().Equal(s.readAt):
		s.read(info.ModTime())
	}
	return append(s.builtIn[:len(s.builtIn):len(s.builtIn)], s.others...)
}

// read reads the roster. The caller holds s.mu.
func (s *users) read(at time.Time) {
	entries, err := roster.Read(s.path)
	if err != nil {
		s.logger.Error("the analysts are as before", "err", err)
		return
	}
	s.others, s.readAt = nil, at
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
