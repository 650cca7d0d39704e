package recipe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// scratchPrefix is the beginning of the names of scratch directories.
const scratchPrefix = "companyscore-recipe-"

// scratch is a directory for one import. Its process holds a lock on it, so that the next import removes it if this process is killed.
type scratch struct {
	path string
	lock *os.File
}

// newScratch makes a scratch directory in dir, "" for the system's directory of temporary files, and removes those of processes that have
// ended. The caller calls close.
func newScratch(dir string) (*scratch, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("make scratch directory: %w", err)
	}
	if strings.ContainsAny(dir, "*?{}[]\\") {
		return nil, fmt.Errorf("make scratch directory in %s: its name has characters of patterns: set TMPDIR", dir)
	}
	if err := sweep(dir); err != nil {
		return nil, err
	}
	for range 10 {
		path, err := os.MkdirTemp(dir, scratchPrefix)
		if err != nil {
			return nil, fmt.Errorf("make scratch directory: %w", err)
		}
		if lock, ok := lockScratch(path); ok {
			return &scratch{path, lock}, nil
		}
	}
	return nil, fmt.Errorf("make scratch directory in %s: other processes remove it", dir)
}

// lockScratch locks a directory. ok is false if another process has it locked or it is removed.
func lockScratch(path string) (lock *os.File, ok bool) {
	lock, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		held, err := lock.Stat()
		now, errNow := os.Stat(path)
		if err == nil && errNow == nil && os.SameFile(held, now) {
			return lock, true
		}
	}
	_ = lock.Close()
	return nil, false
}

// sweep removes the scratch directories in dir whose processes have ended. It skips those of other users.
func sweep(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read directory of temporary files: %w", err)
	}
	for _, entry := range all {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), scratchPrefix) {
			continue
		}
		left := scratch{path: filepath.Join(dir, entry.Name())}
		var ok bool
		if left.lock, ok = lockScratch(left.path); !ok {
			continue
		}
		if err := left.close(); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// close removes the directory.
func (s *scratch) close() error {
	err := os.RemoveAll(s.path)
	return errors.Join(err, s.lock.Close())
}
