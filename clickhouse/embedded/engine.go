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
	lock    *os.File
	version string
	zone    string
	opened  atomic.Int64 // connections so far, which gives each its number

	mu      sync.Mutex // guards control, as a connection runs one statement at a time
	control *conn      // apart from the pools, so that a statement can be killed when all of theirs are busy
}

// lockPath is the file of a data directory on which the process that has it open holds a lock. It contains the id of that process.
func lockPath(path string) string { return filepath.Join(path, "server.lock") }

// lockDirectory takes the lock of a data directory. It ends with the returned file.
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

// InUse reports whether a process has a data directory open, and its id, 0 if it is not known. A directory that does not exist is
// not in use. A process that opens the directory during the call may fail with ErrInUse.
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

// openEngine locks the data directory, which libchdb itself would only do badly, and opens it.
func openEngine(library, path string) (*engine, error) {
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
	e := &engine{lib: lib, path: path, lock: lock}
	if e.control, err = e.open(session{}, "", ""); err == nil {
		var out []byte
		if out, _, err = e.control.query("SELECT version(), timezone()", "TSV", nil); err == nil {
			e.version, e.zone, _ = strings.Cut(strings.TrimSpace(string(out)), "\t")
			return e, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), e.close())
}

// close ends the engine. All pools must be closed before.
func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.control != nil {
		e.control.close()
		e.control = nil
	}
	return e.lock.Close()
}

// kill asks the engine to stop what connection c runs now. It does not wait for the end, and running nothing is no error.
func (e *engine) kill(c *conn) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.control == nil {
		return errors.New("kill query: engine is closed")
	}
	_, _, err := e.control.query("KILL QUERY WHERE Settings['log_comment'] = {tag:String} ASYNC", "Null", []param{{"tag", c.tag}})
	return err
}

// session is the state a connection is opened with. It stays the same for the connection's life, so that connections can be shared
// between requests that want the same state and nothing of one request can show in another.
type session struct {
	database string
	settings string // assignments as SET takes them, in a fixed order
}

// conn is one connection of the library. It runs one statement at a time.
type conn struct {
	engine  *engine
	handle  **cConn
	tag     string // the log_comment of its statements, by which kill finds them
	session session
}

// open connects and brings the connection into the state of s. Of a setting made twice the last one counts, which is in final.
func (e *engine) open(s session, initial, final string) (*conn, error) {
	c := &conn{engine: e, tag: "connection " + strconv.FormatInt(e.opened.Add(1), 10), session: s}
	c.handle = e.lib.open("clickhouse", "--path="+e.path)
	if c.handle == nil {
		return nil, errors.New("libchdb gave no connection: it has one data directory per process, and says more on stderr")
	}
	setup := []string{"SET implicit_select = 0, max_query_size = " + strconv.Itoa(2*maxQuery)}
	for _, more := range []string{initial, s.settings, "log_comment = " + quoteString(c.tag), final} {
		if more != "" {
			setup[0] += ", " + more
		}
	}
	if s.database != "" {
		setup = append(setup, "USE "+quoteName(s.database))
	}
	for _, text := range setup {
		if _, _, err := c.query(text, "Null", nil); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *conn) close() { c.engine.lib.close(c.handle) }

// summary counts what a statement did.
type summary struct {
	readRows, readBytes, writtenRows, writtenBytes, resultRows, resultBytes uint64
	elapsed                                                                 time.Duration
}

// query runs a statement to its end and returns its output. Errors are of type *exception.
func (c *conn) query(text, format string, params []param) ([]byte, summary, error) {
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

// killInterval is the time between two attempts to stop a statement: one that has only begun may not be known to the engine yet.
const killInterval = 50 * time.Millisecond

// queryContext is query that kills the statement when ctx ends. It returns when the engine is done with it in any case.
func (c *conn) queryContext(ctx context.Context, text, format string, params []param) ([]byte, summary, error) {
	type outcome struct {
		out []byte
		sum summary
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil { // here it would end the process, not only the request
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
		_ = c.engine.kill(c) // tried again until it worked or the statement ended
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

// escapeParam turns a string into the value of a String parameter, which the engine reads as one field of TabSeparated.
func escapeParam(s string) string { return paramEscaper.Replace(s) }
