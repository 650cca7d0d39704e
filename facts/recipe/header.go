package recipe

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// headerMax is the maximum length of the first line of a file in bytes.
const headerMax = 1 << 20

// checkHeader returns an error unless the first line of a file names the required columns, each column once. The separator is a tab if
// the line has one, else a comma.
func (p placed) checkHeader() error {
	if p.file.Required == nil {
		return nil
	}
	line, err := p.firstLine()
	if err != nil {
		return fmt.Errorf("%s: line 1: %w", p.name, err)
	}
	columns := strings.Split(line, "\t")
	if len(columns) == 1 {
		if columns, err = csv.NewReader(strings.NewReader(line)).Read(); err != nil {
			return fmt.Errorf("%s: line 1: the names of columns cannot be read: %w", p.name, err)
		}
	}
	for i, column := range columns {
		if column != "" && slices.Contains(columns[:i], column) {
			return fmt.Errorf("%s: line 1: column %q stands there twice", p.name, column)
		}
	}
	for _, column := range p.file.Required {
		if slices.Contains(columns, column) {
			continue
		}
		if len(columns) == 1 && strings.Contains(line, ";") {
			return fmt.Errorf("%s: line 1: no column %q: the separator must be a comma or a tab, not a semicolon", p.name, column)
		}
		return fmt.Errorf("%s: line 1: no column %q among %s", p.name, column, shorten(strings.Join(columns, ", ")))
	}
	return nil
}

// firstLine returns the first line without its end and without a byte order mark.
func (p placed) firstLine() (string, error) {
	in, err := p.open()
	if err != nil {
		return "", err
	}
	defer in.Close()
	line, err := bufio.NewReader(io.LimitReader(in, headerMax)).ReadString('\n')
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", err
	case line == "":
		return "", errors.New("the file is empty: the first line must be names of columns")
	case len(line) == headerMax:
		return "", fmt.Errorf("the line is longer than %d bytes", headerMax)
	}
	return strings.TrimPrefix(strings.TrimRight(line, "\r\n"), "\uFEFF"), nil
}

// open opens the file and decompresses it.
func (p placed) open() (io.ReadCloser, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return nil, err
	}
	text := struct {
		io.Reader
		io.Closer
	}{f, f}
	switch {
	case strings.HasSuffix(p.path, ".gz"):
		if text.Reader, err = gzip.NewReader(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	case strings.HasSuffix(p.path, ".bz2"):
		text.Reader = bzip2.NewReader(f)
	}
	return text, nil
}

// partBytes is the size of the parts in which the engine reads a file.
const partBytes = 10 << 20

// line returns the line of a row that the engine reports. The engine counts rows from 1 without the names of columns in the first part of a
// file, and with them behind it.
func (p placed) line(row int) int {
	if p.file.Required == nil {
		return row
	}
	in, err := p.open()
	if err != nil {
		return row + 1
	}
	defer in.Close()
	lines, buffer := 0, make([]byte, 64<<10)
	for read := 0; read < partBytes; {
		n, err := in.Read(buffer[:min(len(buffer), partBytes-read)])
		lines, read = lines+bytes.Count(buffer[:n], []byte{'\n'}), read+n
		if err != nil {
			return row + 1
		}
	}
	if row < lines+1 {
		return row + 1
	}
	return row
}

// shorten returns the beginning of a text for a message.
func shorten(s string) string {
	if len(s) > 300 {
		return strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}
