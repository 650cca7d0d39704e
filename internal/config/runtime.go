package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Runtime holds the addresses and processes of a running `up` for other commands. It has
// passwords, so only the owner can read its file.
type Runtime struct {
	PID           int    `json:"pid"`
	BaseURL       string `json:"base_url"`
	AdminURL      string `json:"admin_url,omitempty"` // empty without --admin-listen
	ClickHouseURL string `json:"clickhouse_url"`
	AnalystURL    string `json:"analyst_url"`
	RedisURL      string `json:"redis_url"`
	// Processes holds the process ids of the children by name, as of the start.
	Processes map[string]int `json:"processes"`
}

func runtimePath(data string) string { return filepath.Join(data, "runtime.json") }

// WriteRuntime replaces the runtime file of a data directory.
func WriteRuntime(data string, rt Runtime) error {
	text, err := json.MarshalIndent(rt, "", "  ")
	if err != nil {
		return err
	}
	if err := ReplaceFile(runtimePath(data), append(text, '\n')); err != nil {
		return fmt.Errorf("write runtime file: %w", err)
	}
	return nil
}

// ReplaceFile atomically writes a file that only its owner may read. After a crash the
// file has its old or its new content.
func ReplaceFile(path string, content []byte) error {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// RemoveRuntime removes the runtime file at the end of an `up`.
func RemoveRuntime(data string) error { return os.Remove(runtimePath(data)) }

// ReadRuntime returns the Runtime of the `up` that runs on a data directory. The error
// wraps os.ErrNotExist if none runs.
func ReadRuntime(data string) (*Runtime, error) {
	text, err := os.ReadFile(runtimePath(data))
	if err != nil {
		return nil, fmt.Errorf("read runtime file: %w", err)
	}
	var rt Runtime
	if err := json.Unmarshal(text, &rt); err != nil {
		return nil, fmt.Errorf("read runtime file %s: %w", runtimePath(data), err)
	}
	if err := syscall.Kill(rt.PID, 0); errors.Is(err, syscall.ESRCH) {
		return nil, fmt.Errorf("the up that wrote %s has ended: %w", runtimePath(data), os.ErrNotExist)
	}
	return &rt, nil
}

// LockData locks a data directory for this process and creates it if missing. Closing
// the returned file releases the lock; so does the end of the process.
func LockData(data string) (*os.File, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w: choose a directory that this user can write, with --data", err)
	}
	f, err := os.OpenFile(filepath.Join(data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w: choose a directory that this user can write, with --data", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("data directory %s is in use by another companyscore: stop it, or choose another directory with --data",
			data)
	}
	return f, nil
}
