package facts

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// csvTable reads RFC 4180 files whose first row names the columns.
//
// It splits the file into rows at line ends outside quotes and parses each row with
// encoding/csv. An unclosed quote therefore invalidates one line, not all rows up to the
// next quote.
type csvTable struct {
	file  io.Closer
	lines *lineReader
	size  int64
	buf   []byte // lines read
	from  int    // bytes of buf that are consumed
	line  int    // lines consumed
	text  bytes.Reader
	in    *bufio.Reader
	head  []string
	cells []cell
}

func newCSVTable(f io.ReadCloser, size int64, others bool) (*csvTable, error) {
	t := &csvTable{file: f, lines: newLineReader(f), size: size}
	t.in = bufio.NewReader(&t.text)
	_, head, err := t.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: the first line must be column names")
	}
	if err != nil {
		return nil, fmt.Errorf("read column names: %v", err) // %v: the error must not be a Fault
	}
	names := make([]string, len(head))
	for i, c := range head {
		names[i] = strings.TrimSpace(c.text)
	}
	if err := checkColumns(names, others); err != nil {
		return nil, err
	}
	t.head = names
	return t, nil
}

// next reads a row. The cells of the first row have no names.
func (t *csvTable) next() (int, []cell, error) {
	for {
		line := t.line + 1
		text, first, err := t.row()
		if err != nil {
			return line, nil, err
		}
		if t.splitPlain(text, line) {
			t.take(len(text))
			return line, t.cells, t.checkWidth(line)
		}
		t.text.Reset(text)
		t.in.Reset(&t.text)
		rows := csv.NewReader(t.in)
		values, err := rows.Read()
		if errors.Is(err, io.EOF) { // an empty line
			t.take(len(text))
			continue
		}
		var syntax *csv.ParseError
		if errors.As(err, &syntax) {
			t.take(first) // the next lines may be valid rows
			fault := Fault{Line: line, Reason: syntax.Err.Error()}
			if syntax.Line == 1 {
				fault.Column = syntax.Column
			}
			return line, nil, fault
		}
		if err != nil {
			return line, nil, err
		}
		t.cells = t.cells[:0]
		for i, value := range values {
			c := cell{text: value}
			if i < len(t.head) {
				c.name = t.head[i]
			}
			at, column := rows.FieldPos(i)
			c.line, c.column = line+at-1, column
			t.cells = append(t.cells, c)
		}
		t.take(len(text))
		return line, t.cells, t.checkWidth(line)
	}
}

// checkWidth returns a Fault unless the row has a value for each column.
func (t *csvTable) checkWidth(line int) error {
	if t.head != nil && len(t.cells) != len(t.head) {
		return Fault{line, 0, "", fmt.Sprintf("%d values for %d columns", len(t.cells), len(t.head))}
	}
	return nil
}

// splitPlain sets the cells of a row of one line, four times as fast as encoding/csv. It returns false if the row may have a fault or is
// empty.
func (t *csvTable) splitPlain(text []byte, line int) bool {
	row := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if row == "" || strings.ContainsAny(row, "\r\n") {
		return false
	}
	t.cells = t.cells[:0]
	for at := 0; ; at++ {
		c := cell{line: line, column: at + 1}
		if n := len(t.cells); n < len(t.head) {
			c.name = t.head[n]
		}
		end := at
		if end < len(row) && row[end] == '"' {
			n, escaped := 0, false
			for end++; ; end += 2 { // behind a quote
				if n = strings.IndexByte(row[end:], '"'); n < 0 {
					return false
				}
				if end += n; end+1 == len(row) || row[end+1] != '"' {
					break
				}
				escaped = true
			}
			if c.text = row[at+1 : end]; escaped {
				c.text = strings.ReplaceAll(c.text, `""`, `"`)
			}
			end++
			if end < len(row) && row[end] != ',' {
				return false
			}
		} else {
			if n := strings.IndexByte(row[at:], ','); n >= 0 {
				end += n
			} else {
				end = len(row)
			}
			if c.text = row[at:end]; strings.IndexByte(c.text, '"') >= 0 {
				return false
			}
		}
		t.cells = append(t.cells, c)
		if at = end; at == len(row) {
			return true
		}
	}
}

// row returns the lines of the next row and the length of the first line. text is valid
// until the next call. row consumes nothing, except the first line if it returns a Fault.
func (t *csvTable) row() (text []byte, first int, err error) {
	for end, quotes := 0, 0; ; {
		if t.from+end == len(t.buf) {
			err := t.fetch()
			if errors.Is(err, io.EOF) && end > 0 {
				return nil, 0, t.unclosed(first)
			}
			if err != nil {
				return nil, 0, err
			}
		}
		rest := t.buf[t.from+end:]
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			n = len(rest)
		}
		if end == 0 {
			first = n
		}
		end += n
		if first > rowMaxBytes {
			t.take(first)
			return nil, 0, Fault{t.line, 0, "", fmt.Sprintf("the line is longer than %d bytes", rowMaxBytes)}
		}
		if end > rowMaxBytes {
			return nil, 0, t.unclosed(first)
		}
		if quotes += bytes.Count(rest[:n], []byte{'"'}); quotes%2 == 0 {
			return t.buf[t.from : t.from+end], first, nil
		}
	}
}

func (t *csvTable) unclosed(first int) error {
	quote := bytes.LastIndexByte(t.buf[t.from:t.from+first], '"')
	t.take(first)
	return Fault{t.line, quote + 1, "", "a quote is opened and never closed"}
}

func (t *csvTable) fetch() (err error) {
	if t.from > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[t.from:])]
		t.from = 0
	}
	t.buf, err = t.lines.next(t.buf)
	return err
}

func (t *csvTable) take(n int) {
	t.line += max(1, bytes.Count(t.buf[t.from:t.from+n], []byte{'\n'}))
	t.from += n
}

func (t *csvTable) names() []string          { return t.head }
func (t *csvTable) progress() (int64, int64) { return t.lines.done, t.size }
func (t *csvTable) Close() error             { return t.file.Close() }
