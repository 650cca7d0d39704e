package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// running has the statements of analysts that run now. Each is also a file until it has ended, so that after a crash the next process knows
// what ran. It is safe for concurrent use.
type running struct {
	dir  string
	boot string // identifies the run of the machine's kernel: files of an earlier one are from a machine that lost power

	mu   sync.Mutex
	next int
	all  map[int]*runningStatement
}

// runningStatement is a statement of an analyst that runs.
type runningStatement struct {
	Analyst   string `json:"analyst"`
	Statement string `json:"statement"`
	Boot      string `json:"boot"`

	cancel context.CancelCauseFunc
	asked  time.Time // when it was asked to end, zero before
}

// newRunning empties a directory. It returns the statements that ran when the last process of the directory ended, by name of the analyst.
func newRunning(dir string) (r *running, leftover map[string]string, err error) {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // only Linux has it
	r = &running{dir: dir, boot: strings.TrimSpace(string(boot)), all: map[int]*runningStatement{}}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read what ran before: %w", err)
	}
	leftover = map[string]string{}
	for _, entry := range entries {
		var s runningStatement
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err == nil && json.Unmarshal(text, &s) == nil && s.Boot == r.boot { // a file may be cut off
			leftover[s.Analyst] = s.Statement
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, nil, fmt.Errorf("clear what ran before: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make directory of statements: %w", err)
	}
	return r, leftover, nil
}

// runningTextMax is the maximum length of the text of a statement in its file, in bytes.
const runningTextMax = 1000

// add adds a statement that begins. cancel asks it to end, as does the end of ctx. The caller calls ended when the engine has ended it.
func (r *running) add(ctx context.Context, analyst, text string, cancel context.CancelCauseFunc) (ended func(), err error) {
	s := &runningStatement{Analyst: analyst, Statement: text[:min(len(text), runningTextMax)], Boot: r.boot, cancel: cancel}
	content, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("note statement: %w", err)
	}
	r.mu.Lock()
	id := r.next
	r.next++
	r.all[id] = s
	r.mu.Unlock()
	path := filepath.Join(r.dir, strconv.Itoa(id))
	stop := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if s.asked.IsZero() {
			s.asked = time.Now()
		}
	})
	ended = func() {
		stop()
		r.mu.Lock()
		delete(r.all, id)
		r.mu.Unlock()
		_ = os.Remove(path)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		ended()
		return nil, fmt.Errorf("note statement: %w", err)
	}
	return ended, nil
}

// cancelAll asks all statements to end.
func (r *running) cancelAll(cause error) {
	r.mu.Lock()
	all := maps.Clone(r.all)
	r.mu.Unlock()
	for _, s := range all {
		s.cancel(cause)
	}
}

// overdue returns the statements that were asked to end before an instant and still run, by name of the analyst.
func (r *running) overdue(before time.Time) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := map[string]string{}
	for _, s := range r.all {
		if !s.asked.IsZero() && s.asked.Before(before) {
			late[s.Analyst] = s.Statement
		}
	}
	return late
}

// clear forgets all statements, so that the end of this process is not blamed on them.
func (r *running) clear() error { return os.RemoveAll(r.dir) }
