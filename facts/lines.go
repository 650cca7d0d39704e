package facts

import (
	"bufio"
	"errors"
	"io"
)

// rowMaxBytes is the maximum size of a row of a text file in bytes. It limits the memory
// of a reader.
const rowMaxBytes = 1 << 20

// lineReader reads the lines of a file. It skips a UTF-8 byte order mark.
type lineReader struct {
	in   *bufio.Reader
	done int64 // bytes read
}

func newLineReader(r io.Reader) *lineReader {
	l := &lineReader{in: bufio.NewReaderSize(r, rowMaxBytes)}
	if mark, err := l.in.Peek(3); err == nil && string(mark) == "\xEF\xBB\xBF" {
		l.in.Discard(3)
		l.done = 3
	}
	return l
}

// next appends the next line with its line end to dst. It returns io.EOF at the end of the
// file. It truncates a line longer than rowMaxBytes to rowMaxBytes plus a line feed, so
// callers can detect it by its length.
func (l *lineReader) next(dst []byte) ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	dst = append(dst, text...)
	l.done += int64(len(text))
	if !errors.Is(err, bufio.ErrBufferFull) {
		if errors.Is(err, io.EOF) && len(text) > 0 {
			err = nil
		}
		return dst, err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = l.in.ReadSlice('\n')
		l.done += int64(len(text))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return append(dst, '\n'), err
}
