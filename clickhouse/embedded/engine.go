package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrInUse is returned by New when another process, or another Server of this one, has the data directory open.
var ErrInUse = errors.New("data directory is in use by another process")

// engine is libchdb with a data directory open.
type engine struct {
	lib     *library
	path    string
	config  string // main configuration file
	lock    *os.File
	version string
	zone    string
	opened  atomic.Int64 // number of connections opened so far

	mu      sync.Mutex   // guards control: a connection runs one statement at a time
	control *libraryConn // outside the pools, so that kill works when all their connections are busy
}

// lockPath returns the lock file of a data directory. The process that has the directory open holds a lock on it and writes its id to it.
func lockPath(path string) string { return filepath.Join(path, "server.lock") }

// lockDirectory locks a data directory. Closing the returned file releases the lock.
func lockDirectory(path string) (lock *os.File, err error) {
	lock, err = os.OpenFile(lockPath(path), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		if err = lock.Truncate(0); err == nil {
			_, err = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		}
	}
	if err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("open %s: %w", path, ErrInUse)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return lock, nil
}

// InUse reports whether a process has a data directory open, and the id of that process, 0 if unknown. A missing directory is not in
// use. A process that opens the directory during the call may fail with ErrInUse.
func InUse(path string) (inUse bool, pid int, err error) {
	f, err := os.OpenFile(lockPath(path), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, fmt.Errorf("read lock of data directory: %w", err)
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return false, 0, nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return false, 0, fmt.Errorf("read lock of data directory: %w", err)
	}
	text := make([]byte, 20)
	n, _ := f.ReadAt(text, 0) // empty while the holder writes it
	pid, _ = strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return true, pid, nil
}

// openEngine locks the data directory, removes the files of dropped tables and opens the engine. The lock of libchdb itself is not
// reliable. memory is the limit of the engine's own count of bytes, 0 for its default.
func openEngine(library, path, public string, memory uint64) (*engine, error) {
	lib, err := loadLibrary(library)
	if err != nil {
		return nil, err
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return nil, err
	}
	if err := removeDropped(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	config, err := writeAccess(path, public, memory)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	e := &engine{lib: lib, path: path, config: config, lock: lock}
	if e.control, err = e.open(session{}); err == nil {
		var out []byte
		if out, _, err = e.control.query("SELECT version(), timezone()", "TSV", nil); err == nil {
			e.version, e.zone, _ = strings.Cut(strings.TrimSpace(string(out)), "\t")
			// Migrate does this too, but analysts may connect earlier.
			if _, _, err = e.control.query("CREATE DATABASE IF NOT EXISTS "+quoteName(public), "Null", nil); err == nil {
				return e, nil
			}
		}
	}
	return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), e.close())
}

// close closes the engine. The caller closes all pools first.
func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.control != nil {
		e.control.close()
		e.control = nil
	}
	return e.lock.Close()
}

// kill cancels the statement that c runs. It does not wait for its end. It returns nil if c runs nothing.
func (e *engine) kill(c *libraryConn) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.control == nil {
		return errors.New("kill query: engine is closed")
	}
	_, _, err := e.control.query("KILL QUERY WHERE Settings['log_comment'] = {tag:String} ASYNC", "Null", []param{{"tag", c.tag}})
	return err
}

// session is the initial state of a connection. It never changes, so requests with equal sessions can share a connection and cannot
// affect each other.
type session struct {
	rights
	database string
	settings string // argument of SET, sorted by name
}

// libraryConn is one connection of the library. It runs one statement at a time.
type libraryConn struct {
	engine  *engine
	handle  **cConn
	tag     string // log_comment of its statements; kill selects by it
	session session
}

// rights are what the connections of a user have in common.
type rights struct {
	role   string // current role, "" for all
	limits string // argument of SET, before the settings of the session
}

// open opens a connection with session s. The last value of a setting applies.
func (e *engine) open(s session) (*libraryConn, error) {
	c := &libraryConn{engine: e, tag: "connection " + strconv.FormatInt(e.opened.Add(1), 10), session: s}
	c.handle = e.lib.open("clickhouse", "--path="+e.path, "--config-file="+e.config)
	if c.handle == nil {
		return nil, errors.New("libchdb returned no connection: it supports one data directory per process; stderr has the cause")
	}
	var setup []string
	if s.role != "" { // first, so that the database must be open to the role
		setup = append(setup, "SET ROLE "+quoteName(s.role))
	}
	if s.database != "" {
		setup = append(setup, "USE "+quoteName(s.database))
	}
	settings := "SET implicit_select = 0, max_query_size = " + strconv.Itoa(2*maxQuery)
	for _, more := range []string{s.limits, s.settings, "log_comment = " + quoteString(c.tag)} {
		if more != "" {
			settings += ", " + more
		}
	}
	for _, text := range append(setup, settings) {
		if _, _, err := c.query(text, "Null", nil); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *libraryConn) close() { c.engine.lib.close(c.handle) }

// summary has the counters of one statement.
type summary struct {
	readRows, readBytes, writtenRows, writtenBytes, resultRows, resultBytes uint64
	elapsed                                                                 time.Duration
}

// query runs a statement to its end and returns its output. Errors are of type *exception.
func (c *libraryConn) query(text, format string, params []param) ([]byte, summary, error) {
	lib := c.engine.lib
	r := lib.run(*c.handle, text, format, params)
	if r == nil {
		return nil, summary{}, newException(codeUnknownException, "libchdb returned no result")
	}
	defer lib.destroy(r)
	if text := goString(lib.failure(r)); text != "" {
		return nil, summary{}, parseException(text) // the counters of a failed result are not initialised
	}
	return lib.output(r), summary{
		readRows: lib.readRows(r), readBytes: lib.readBytes(r),
		writtenRows: lib.writtenRows(r), writtenBytes: lib.writtenBytes(r),
		resultRows: lib.resultRows(r), resultBytes: lib.resultBytes(r),
		elapsed: time.Duration(lib.elapsed(r) * float64(time.Second)),
	}, nil
}

// killInterval is the time between two attempts to kill a statement. The engine may not know a statement that just began.
const killInterval = 50 * time.Millisecond

// queryContext is query that kills the statement when ctx ends. It returns only after the engine has ended the statement.
func (c *libraryConn) queryContext(ctx context.Context, text, format string, params []param) ([]byte, summary, error) {
	type outcome struct {
		out []byte
		sum summary
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil { // a panic in this goroutine would end the process
				o = outcome{err: newException(codeUnknownException, "panic in libchdb's binding: %v", r)}
			}
			done <- o
		}()
		o.out, o.sum, o.err = c.query(text, format, params)
	}()
	select {
	case o := <-done:
		return o.out, o.sum, o.err
	case <-ctx.Done():
	}
	retry := time.NewTicker(killInterval)
	defer retry.Stop()
	for {
		_ = c.engine.kill(c) // retried until the statement ends
		select {
		case <-done:
			return nil, summary{}, context.Cause(ctx)
		case <-retry.C:
		}
	}
}

var (
	nameQuoter   = strings.NewReplacer("\\", "\\\\", "`", "\\`")
	stringQuoter = strings.NewReplacer("\\", "\\\\", "'", "\\'")
	paramEscaper = strings.NewReplacer("\\", "\\\\", "\t", "\\t", "\n", "\\n", "\r", "\\r", "\x00", "\\0")
)

func quoteName(name string) string { return "`" + nameQuoter.Replace(name) + "`" }
func quoteString(s string) string  { return "'" + stringQuoter.Replace(s) + "'" }

// escapeParam escapes s for a String parameter. The engine parses parameters as fields of TabSeparated.
func escapeParam(s string) string { return paramEscaper.Replace(s) }
