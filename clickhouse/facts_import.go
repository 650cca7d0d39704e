package clickhouse

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ImportOptions says how to import.
type ImportOptions struct {
	// Progress is told how far the file is read, in bytes (rows for Parquet). It may be nil.
	Progress func(done, total int64)
}

// ImportFault says what is wrong with one row.
type ImportFault struct {
	// Line of the file, from 1; the number of the row for Parquet.
	Line int
	// Column is the byte in the line, from 1; 0 where the format has none.
	Column int
	// Field is the name of the column, empty when the row as a whole is at fault.
	Field  string
	Reason string
}

// String writes the fault as line, column, field and reason.
func (f ImportFault) String() string {
	place := "line " + strconv.Itoa(f.Line)
	if f.Column > 0 {
		place += ", column " + strconv.Itoa(f.Column)
	}
	if f.Field != "" {
		place += " (" + f.Field + ")"
	}
	return place + ": " + f.Reason
}

// ImportReport says what came of an import.
type ImportReport struct {
	Rows, Imported int
	// Faults holds the first thousand; FaultsOmitted counts the others.
	Faults        []ImportFault
	FaultsOmitted int
}

const (
	faultMax      = 1000
	importBatch   = 5000
	jsonLineBytes = 1 << 20
)

// cell is one value of a row as text, with the byte of the line where it begins.
type cell struct {
	name, text string
	column     int
}

// tableReader reads the rows of a file one after the other. next returns io.EOF
// at the end and an ImportFault for a row that cannot be read; the cells are good
// until the next call.
type tableReader interface {
	next() (line int, cells []cell, err error)
	progress() (done, total int64)
	Close() error
}

// Error makes a fault an error, so that readers can return it.
func (f ImportFault) Error() string { return f.String() }

// ImportFacts imports company facts from a .csv, .jsonl (or .ndjson) or .parquet
// file. Good rows go in, whatever happens to others; bad rows are in the report.
// Importing a company again replaces what was known of it. An error means that
// the import stopped: the rows before may be in, and repeating it is harmless.
func (db *DB) ImportFacts(ctx context.Context, path string, opt ImportOptions) (ImportReport, error) {
	var report ImportReport
	reader, err := openTable(path)
	if err != nil {
		return report, fmt.Errorf("import %s: %w", path, err)
	}
	defer reader.Close()
	now := time.Now()
	columns := make(map[string]FactColumn)
	seen := make(map[string]int)
	var batch []*factsRow
	flush := func() error {
		if err := insert(ctx, db, factsInsert, batch); err != nil {
			return fmt.Errorf("import %s: %w", path, err)
		}
		report.Imported += len(batch)
		batch = batch[:0]
		if opt.Progress != nil {
			opt.Progress(reader.progress())
		}
		return nil
	}
	for {
		row, line, err := readFacts(reader, columns)
		if errors.Is(err, io.EOF) {
			return report, flush()
		}
		var fault ImportFault
		if err != nil && !errors.As(err, &fault) {
			return report, fmt.Errorf("import %s: %w", path, err)
		}
		report.Rows++
		if err == nil {
			if first, twice := seen[row.Domain]; twice {
				err, fault = errDuplicate, ImportFault{line, 0, "domain", fmt.Sprintf("%s stands in line %d already", row.Domain, first)}
			}
		}
		if err != nil {
			report.add(fault)
			continue
		}
		seen[row.Domain] = line
		row.ImportedAt = now
		if batch = append(batch, row); len(batch) >= importBatch {
			if err := flush(); err != nil {
				return report, err
			}
		}
	}
}

var errDuplicate = errors.New("duplicate")

func (r *ImportReport) add(fault ImportFault) {
	if len(r.Faults) < faultMax {
		r.Faults = append(r.Faults, fault)
	} else {
		r.FaultsOmitted++
	}
}

// readFacts reads the next row. The error is io.EOF at the end, an ImportFault
// for a bad row, and anything else when the import cannot go on.
func readFacts(reader tableReader, columns map[string]FactColumn) (*factsRow, int, error) {
	line, cells, err := reader.next()
	if err != nil {
		return nil, line, err
	}
	row, err := parseFacts(columns, line, cells)
	return row, line, err
}

// parseFacts reads the cells of a row. The error is an ImportFault for a bad
// value, and another one for a column nobody knows.
func parseFacts(columns map[string]FactColumn, line int, cells []cell) (*factsRow, error) {
	row := &factsRow{Signals: map[string]float64{}, Categories: []string{}}
	for _, c := range cells {
		column, ok := columns[c.name]
		if !ok {
			var err error
			if column, err = factColumn(c.name); err != nil {
				return nil, err
			}
			columns[c.name] = column
		}
		text := strings.TrimSpace(c.text)
		if text == "" {
			continue
		}
		if len(text) > textMaxBytes {
			return nil, ImportFault{line, c.column, c.name, fmt.Sprintf("longer than %d bytes", textMaxBytes)}
		}
		if err := column.set(row, strings.ToValidUTF8(text, "\uFFFD")); err != nil {
			return nil, ImportFault{line, c.column, c.name, fmt.Sprintf("%q: %v", shorten(text), err)}
		}
	}
	if row.Domain == "" {
		return nil, ImportFault{line, 0, "domain", "there is no domain"}
	}
	return row, nil
}

func shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

func openTable(path string) (tableReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var r tableReader
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		r, err = newCSVTable(f, info.Size())
	case ".jsonl", ".ndjson":
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, jsonLineBytes)
		r = &jsonTable{file: f, lines: lines, size: info.Size()}
	case ".parquet":
		r, err = newParquetTable(f, info.Size())
	default:
		err = fmt.Errorf("file type %q: use .csv, .jsonl or .parquet", ext)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// csvTable reads RFC 4180 files whose first row names the columns.
type csvTable struct {
	file  *os.File
	rows  *csv.Reader
	head  []string
	cells []cell
	size  int64
}

func newCSVTable(f *os.File, size int64) (*csvTable, error) {
	in := bufio.NewReader(f)
	if mark, err := in.Peek(3); err == nil && bytes.Equal(mark, []byte("\xEF\xBB\xBF")) {
		in.Discard(3)
	}
	t := &csvTable{file: f, rows: csv.NewReader(in), size: size}
	t.rows.FieldsPerRecord = -1
	head, err := t.rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: the first line must name the columns")
	}
	if err != nil {
		return nil, fmt.Errorf("read column names: %w", err)
	}
	seen := make(map[string]bool)
	for _, name := range head {
		name = strings.TrimSpace(name)
		if _, err := factColumn(name); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("column %q stands in the first line twice", name)
		}
		seen[name] = true
		t.head = append(t.head, name)
	}
	if !seen["domain"] {
		return nil, errors.New(`there is no column "domain" in the first line`)
	}
	t.cells = make([]cell, len(t.head))
	t.rows.ReuseRecord = true
	return t, nil
}

func (t *csvTable) next() (int, []cell, error) {
	row, err := t.rows.Read()
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return 0, nil, ImportFault{syntax.Line, syntax.Column, "", syntax.Err.Error()}
	}
	if err != nil {
		return 0, nil, err
	}
	line, _ := t.rows.FieldPos(0)
	if len(row) != len(t.head) {
		return line, nil, ImportFault{line, 0, "", fmt.Sprintf("%d values for %d columns", len(row), len(t.head))}
	}
	for i, text := range row {
		_, column := t.rows.FieldPos(i)
		t.cells[i] = cell{t.head[i], text, column}
	}
	return line, t.cells, nil
}

func (t *csvTable) progress() (int64, int64) { return min(t.rows.InputOffset(), t.size), t.size }
func (t *csvTable) Close() error             { return t.file.Close() }

// jsonTable reads one JSON object per line.
type jsonTable struct {
	file  *os.File
	lines *bufio.Scanner
	line  int
	done  int64
	size  int64
}

func (t *jsonTable) next() (int, []cell, error) {
	for t.lines.Scan() {
		t.line++
		t.done += int64(len(t.lines.Bytes())) + 1
		text := bytes.TrimSpace(t.lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var object map[string]any
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&object); err != nil {
			return t.line, nil, ImportFault{t.line, int(dec.InputOffset()) + 1, "", "not a JSON object: " + err.Error()}
		}
		if dec.More() {
			return t.line, nil, ImportFault{t.line, int(dec.InputOffset()) + 1, "", "more than one value in the line"}
		}
		cells := make([]cell, 0, len(object))
		for name, value := range object {
			text, err := plain(value)
			if err != nil {
				return t.line, nil, ImportFault{t.line, 0, name, err.Error()}
			}
			cells = append(cells, cell{name: name, text: text})
		}
		return t.line, cells, nil
	}
	if err := t.lines.Err(); err != nil {
		return 0, nil, fmt.Errorf("line %d: %w", t.line+1, err)
	}
	return 0, nil, io.EOF
}

func (t *jsonTable) progress() (int64, int64) { return min(t.done, t.size), t.size }
func (t *jsonTable) Close() error             { return t.file.Close() }

// plain writes a JSON or Parquet value as it would stand in a CSV file.
func plain(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case json.Number:
		return v.String(), nil
	case bool, int, int8, int16, int32, int64, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), nil
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case time.Time:
		return v.UTC().Format(time.DateOnly), nil
	case []any:
		texts := make([]string, len(v))
		for i, item := range v {
			text, err := plain(item)
			if err != nil {
				return "", err
			}
			texts[i] = text
		}
		return strings.Join(texts, "|"), nil
	}
	return "", fmt.Errorf("a value of type %T does not fit into a column", value)
}

// parquetTable reads the rows of a Parquet file.
type parquetTable struct {
	file   *os.File
	rows   *parquet.GenericReader[any]
	schema *parquet.Schema
	row    int64
	total  int64
}

func newParquetTable(f *os.File, size int64) (*parquetTable, error) {
	file, err := parquet.OpenFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("read Parquet file: %w", err)
	}
	for _, field := range file.Schema().Fields() {
		if _, err := factColumn(field.Name()); err != nil {
			return nil, err
		}
	}
	return &parquetTable{file: f, rows: parquet.NewGenericReader[any](file, file.Schema()), schema: file.Schema(), total: file.NumRows()}, nil
}

func (t *parquetTable) next() (int, []cell, error) {
	var rows [1]any
	// The end may be reported together with the last row or after it.
	if n, err := t.rows.Read(rows[:]); n == 0 {
		return 0, nil, cmp.Or(err, io.EOF)
	}
	row, ok := rows[0].(map[string]any)
	if !ok {
		return 0, nil, fmt.Errorf("row %d is a %T, not a record", t.row+1, rows[0])
	}
	t.row++
	cells := make([]cell, 0, len(row))
	for _, field := range t.schema.Fields() {
		value := row[field.Name()]
		if days, ok := value.(int32); ok && isDate(field) {
			value = time.Unix(int64(days)*24*60*60, 0)
		}
		text, err := plain(value)
		if err != nil {
			return int(t.row), nil, ImportFault{int(t.row), 0, field.Name(), err.Error()}
		}
		cells = append(cells, cell{name: field.Name(), text: text})
	}
	return int(t.row), cells, nil
}

func isDate(field parquet.Field) bool {
	logical := field.Type().LogicalType()
	if logical == nil {
		return false
	}
	_, date := logical.Value.(*format.DateType)
	return date
}

func (t *parquetTable) progress() (int64, int64) { return t.row, t.total }
func (t *parquetTable) Close() error             { return errors.Join(t.rows.Close(), t.file.Close()) }
