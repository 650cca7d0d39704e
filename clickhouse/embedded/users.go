package embedded

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"companyscore/clickhouse/embedded/roster"
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

// user is a user of the server.
type user struct {
	name     string
	password [sha256.Size]byte
	rights   rights
	pool     *pool
	guard    *analystGuard // nil for the service's user, who has all rights
}

// database returns the default database of a session that asks for one, or an exception. Many tools send "default" if none is entered.
func (u *user) database(asked string) (string, error) {
	switch {
	case u.guard == nil:
		return asked, nil
	case asked == "", asked == "default", asked == u.guard.public:
		return u.guard.public, nil
	}
	return "", u.guard.denied("The database of this user is %s; write the name of another one in front of the table", u.guard.public)
}

// admits returns an exception for a session or role that the user cannot have. An analyst's session has no state: it can change none, and
// settings come with each statement. So each session exists, and statements of one may run at once.
func (u *user) admits(query url.Values) error {
	switch {
	case u.guard == nil && query.Has("session_id"):
		return newException(codeNotImplemented,
			"session_id: sessions are not kept by the embedded ClickHouse, send settings with each request")
	case u.guard == nil && query.Has("role"):
		return newException(codeNotImplemented, "role: the embedded ClickHouse has no roles")
	}
	for _, role := range query["role"] {
		if role != "" && role != roleAnalysts {
			return newException(codeUnknownRole, "There is no role %s in user directories", quoteName(role))
		}
	}
	return nil
}

// file is a file that is read again when it has changed.
type file struct {
	path   string
	known  bool
	asRead os.FileInfo // nil for a missing file
	failed bool        // the last look
}

// changed reports whether the file is not as it was at the last look. Each change is a new file, and two changes within one tick of the
// clock have the same modification time. It returns an error at the first of several looks that fail.
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

// find returns the user with a name and a password.
func (s *users) find(name, password string) (*user, error) {
	if name == "" {
		return nil, newException(codeRequiredPassword, "Authentication failed: send user and password, as with curl --user")
	}
	hash := sha256.Sum256([]byte(password)) // equal lengths make the comparison constant-time
	var found *user
	for _, u := range s.all() {
		if subtle.ConstantTimeCompare([]byte(u.name), []byte(name))&subtle.ConstantTimeCompare(u.password[:], hash[:]) == 1 {
			found = u
		}
	}
	if found == nil {
		return nil, newException(codeAuthFailed, "%s: Authentication failed: password is incorrect, or there is no user with such name",
			name)
	}
	return found, nil
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
	own := rights{roleAnalysts, initial(l, s.guard.spill)}
	return &user{name: name, password: password, rights: own, pool: s.pool, guard: s.guard.of(name, l)}
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
		return newException(codeAccessDenied,
			"%s: Statements are refused %s, since the engine has ended while one ran: %s. The statement began with %s",
			name, end, r.Reason, quoteString(r.Statement))
	}
	return nil
}
