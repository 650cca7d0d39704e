package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

// spool is the directory through which data pass between HTTP and the engine, which reads and writes files only: INSERT data wait in a
// file until all of them are here, as inline data are cut off at 256 KiB and a broken upload must insert nothing; results come through a
// named pipe, as libchdb's own streaming calls begin every chunk with a header again and so suit only formats that have none.
type spool struct {
	dir   string
	limit int64 // bytes of one INSERT
	count atomic.Int64
}

// newSpool makes the directory, without what a crash left in it.
func newSpool(dir string, limit int64) (*spool, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear spool: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	return &spool{dir: dir, limit: limit}, nil
}

// save writes all of r to a file and returns its path. The caller removes it.
func (s *spool) save(r io.Reader) (path string, err error) {
	f, err := os.CreateTemp(s.dir, "insert-")
	if err != nil {
		return "", fmt.Errorf("spool: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	n, err := io.Copy(f, io.LimitReader(r, s.limit+1))
	var disk *fs.PathError
	switch {
	case errors.As(err, &disk):
		return "", fmt.Errorf("spool: %w", err)
	case err != nil:
		return "", newException(codeBadArguments, "read the data of the INSERT: %v", err)
	case n > s.limit:
		return "", newException(codeQueryTooLarge, "The data of the INSERT are larger than %d bytes: send them in parts", s.limit)
	}
	return f.Name(), nil
}

// stream runs a SELECT and copies its result to w as it comes. It returns when the engine is done; when w fails, the engine is stopped.
func (s *spool) stream(ctx context.Context, c *conn, st statement, format string, params []param, w io.Writer) (summary, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("result-%d", s.count.Add(1)))
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return summary{}, fmt.Errorf("make pipe: %w", err)
	}
	defer os.Remove(path)
	// Opened without blocking, the pipe is read by Go's poller and not by a thread of its own.
	from, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return summary{}, fmt.Errorf("open pipe: %w", err)
	}
	defer from.Close()
	// A second writer keeps the pipe from ending before the engine has begun.
	open, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return summary{}, fmt.Errorf("open pipe: %w", err)
	}
	defer open.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if _, err := io.Copy(onlyWriter{w}, from); err != nil {
			cancel(err)
			_, _ = io.Copy(io.Discard, from) // the engine writes until it has stopped, and must not meet a closed pipe
		}
	}()
	_, sum, err := c.queryContext(ctx, st.withOutput(path, format), format, params)
	_ = open.Close()
	<-copied
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return sum, err
}

// onlyWriter hides ReadFrom, by which io.Copy would let the destination choose the size of the pieces.
type onlyWriter struct{ io.Writer }

// withInput is an INSERT that reads its data from a file.
func (st statement) withInput(path string) string {
	return st.text[:st.clause] + " FROM INFILE " + quoteString(path) + " COMPRESSION 'none' " + st.text[st.clause:]
}

// withOutput is a SELECT that writes its result to a file that exists. The line end closes a comment.
func (st statement) withOutput(path, format string) string {
	into := "\nINTO OUTFILE " + quoteString(path) + " APPEND COMPRESSION 'none' "
	if st.format == "" {
		into += "FORMAT " + format
	}
	return st.text[:st.clause] + into + st.text[st.clause:]
}
