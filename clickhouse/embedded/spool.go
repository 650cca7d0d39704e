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

// spool is the directory of the files between HTTP and the engine. Data of an INSERT are written to a file first: the engine truncates
// inline data at 256 KiB, and an incomplete upload must insert nothing. Results are read from a named pipe: the streaming calls of libchdb
// repeat the header in every chunk, which breaks formats with a header.
type spool struct {
	dir   string
	limit int64 // bytes of one INSERT
	count atomic.Int64

	answers    atomic.Int64 // bytes of the answers to analysts
	answersMax int64        // of answers, above which statements wait for their clients, or fail if nothing is sent before their end
}

// temporary returns the bytes that answers to analysts may have on the disk of the data, and as many temporary files of their statements.
func temporary(path string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		return 0, fmt.Errorf("read free space of %s: %w", path, err)
	}
	return min(temporaryMax, int64(disk.Bavail)*int64(disk.Bsize)/4), nil
}

// temporaryMax is the maximum of temporary, in bytes.
const temporaryMax = 16 << 30

// newSpool creates an empty directory. It removes the files of an earlier process. limit is the maximum size of the data of one INSERT, and
// answersMax of the answers to analysts together, in bytes.
func newSpool(dir string, limit, answersMax int64) (*spool, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear spool: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	return &spool{dir: dir, limit: limit, answersMax: answersMax}, nil
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

// stream runs a SELECT and copies its result to w while the engine writes it. It returns when the engine has ended the statement. If a
// write to w fails, it kills the statement.
func (s *spool) stream(ctx context.Context, c *libraryConn, st statement, format string, params []param, w io.Writer) (summary, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("result-%d", s.count.Add(1)))
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return summary{}, fmt.Errorf("make pipe: %w", err)
	}
	defer os.Remove(path)
	// With O_NONBLOCK, Go's poller reads the pipe without a thread.
	from, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return summary{}, fmt.Errorf("open pipe: %w", err)
	}
	defer from.Close()
	// A second writer prevents EOF before the engine opens the pipe.
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
			_, _ = io.Copy(io.Discard, from) // drain the pipe until the engine stops
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

// onlyWriter hides ReadFrom of the destination, so that io.Copy determines the chunk size.
type onlyWriter struct{ io.Writer }

// withInput returns the INSERT with a clause that reads the data from a file.
func (st statement) withInput(path string) string {
	return st.text[:st.clause] + " FROM INFILE " + quoteString(path) + " COMPRESSION 'none' " + st.text[st.clause:]
}

// withOutput returns the SELECT with a clause that appends the result to an existing file. The line feed ends a trailing comment.
func (st statement) withOutput(path, format string) string {
	into := "\nINTO OUTFILE " + quoteString(path) + " APPEND COMPRESSION 'none' "
	if st.format == "" {
		into += "FORMAT " + format
	}
	return st.text[:st.clause] + into + st.text[st.clause:]
}
