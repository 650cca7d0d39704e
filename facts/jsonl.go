package facts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// jsonTable reads one JSON object per line.
type jsonTable struct {
	file   io.Closer
	lines  *lineReader
	size   int64
	buf    []byte
	line   int
	others bool            // whether names that are no facts are allowed
	row    map[string]bool // names in the current row
	all    map[string]bool // names in the rows so far
	cells  []cell
}

// namesMax is the maximum number of different names in a file.
const namesMax = 1000

func newJSONTable(f io.ReadCloser, size int64, others bool) *jsonTable {
	return &jsonTable{file: f, lines: newLineReader(f), size: size, others: others, row: make(map[string]bool), all: make(map[string]bool)}
}

func (t *jsonTable) next() (int, []cell, error) {
	for {
		var err error
		if t.buf, err = t.lines.next(t.buf[:0]); err != nil {
			return t.line, nil, err
		}
		t.line++
		if len(t.buf) > rowMaxBytes {
			return t.line, nil, Fault{t.line, 0, "", fmt.Sprintf("the line is longer than %d bytes", rowMaxBytes)}
		}
		if len(bytes.TrimSpace(t.buf)) > 0 {
			err := t.parse(t.buf)
			return t.line, t.cells, err
		}
	}
}

// parse parses a line into cells, in the order of the line.
func (t *jsonTable) parse(text []byte) error {
	t.cells = t.cells[:0]
	clear(t.row)
	if !utf8.Valid(text) { // the decoder would replace invalid bytes without an error
		return Fault{t.line, 0, "", "not UTF-8"}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	fault := func(field, reason string) error {
		return Fault{t.line, int(dec.InputOffset()) + 1, field, reason}
	}
	broken := func(field string, err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the line ends unexpectedly")
		}
		return fault(field, "not JSON: "+err.Error())
	}
	if open, err := dec.Token(); err != nil {
		return broken("", err)
	} else if open != json.Delim('{') {
		return fault("", "not a JSON object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return broken("", err)
		}
		name, ok := key.(string)
		if !ok {
			return fault("", "not JSON: a name is missing")
		}
		if _, err := columnOf(name, t.others); err != nil {
			return fault("", err.Error())
		}
		if !t.all[name] && len(t.all) >= namesMax {
			return fault("", fmt.Sprintf("more than %d names in the file", namesMax))
		}
		if t.row[name] {
			return fault(name, "duplicate name")
		}
		t.row[name], t.all[name] = true, true
		rest := text[dec.InputOffset():]
		column := len(text) - len(bytes.TrimLeft(rest, " \t\r:")) + 1
		var value any
		if err := dec.Decode(&value); err != nil {
			return broken(name, err)
		}
		plain, err := jsonText(value)
		if err != nil {
			return Fault{t.line, column, name, err.Error()}
		}
		t.cells = append(t.cells, cell{name, plain, t.line, column})
	}
	if _, err := dec.Token(); err != nil {
		return broken("", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fault("", "something follows the object")
	}
	return nil
}

// jsonText returns a value as in a CSV file. It joins lists by |.
func jsonText(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return fmt.Sprint(v), nil
	case []any:
		texts := make([]string, len(v))
		for i, item := range v {
			if _, list := item.([]any); list {
				return "", errors.New("a list within a list does not fit into a column")
			}
			text, err := jsonText(item)
			if err != nil {
				return "", err
			}
			texts[i] = text
		}
		return strings.Join(texts, "|"), nil
	}
	return "", errors.New("an object does not fit into a column")
}

func (t *jsonTable) names() []string          { return slices.Sorted(maps.Keys(t.all)) }
func (t *jsonTable) progress() (int64, int64) { return t.lines.done, t.size }
func (t *jsonTable) Close() error             { return t.file.Close() }
