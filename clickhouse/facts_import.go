package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ImportOptions says how to import.
type ImportOptions struct {
	// Progress is told how far the file is read, in bytes. It may be nil.
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
	faultMax    = 1000
	importBatch = 5000
)

// cell is one value of a row as text, with the place where it begins: the line,
// and the byte in the line, 0 where the format has none.
type cell struct {
	name, text   string
	line, column int
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
//
// The file is read as a stream; what grows with it is the list of domains seen.
func (db *DB) ImportFacts(ctx context.Context, path string, opt ImportOptions) (ImportReport, error) {
	report, err := db.importFacts(ctx, path, opt)
	if err != nil {
		err = fmt.Errorf("import %s: %w", path, err)
	}
	return report, err
}

func (db *DB) importFacts(ctx context.Context, path string, opt ImportOptions) (report ImportReport, err error) {
	table, err := openTable(path)
	if err != nil {
		return report, err
	}
	defer table.Close()
	var batch []*factsRow
	flush := func() error {
		// A record that was made before this instant did not see these facts, so that a
		// refresh makes a new one. One of the time until the insert is done may have.
		now := time.Now()
		for _, row := range batch {
			row.ImportedAt = now
		}
		if err := insert(ctx, db, factsInsert, batch); err != nil {
			return err
		}
		report.Imported += len(batch)
		batch = batch[:0]
		if opt.Progress != nil {
			opt.Progress(table.progress())
		}
		return nil
	}
	reader := newFactsReader(table)
	for ctx.Err() == nil {
		row, err := reader.next()
		if errors.Is(err, io.EOF) {
			return report, flush()
		}
		var fault ImportFault
		if err != nil && !errors.As(err, &fault) {
			return report, err
		}
		report.Rows++
		if err != nil {
			report.add(fault)
			continue
		}
		if batch = append(batch, row); len(batch) >= importBatch {
			if err := flush(); err != nil {
				return report, err
			}
		}
	}
	return report, context.Cause(ctx)
}

func (r *ImportReport) add(fault ImportFault) {
	if len(r.Faults) < faultMax {
		r.Faults = append(r.Faults, fault)
	} else {
		r.FaultsOmitted++
	}
}

// factsReader makes facts of the rows of a table.
type factsReader struct {
	table   tableReader
	columns map[string]FactColumn
	seen    map[string]int // line of each domain
}

func newFactsReader(table tableReader) *factsReader {
	return &factsReader{table, make(map[string]FactColumn), make(map[string]int)}
}

// next reads the next row. The error is io.EOF at the end, an ImportFault for a
// bad row, and anything else when the import cannot go on.
func (r *factsReader) next() (*factsRow, error) {
	line, cells, err := r.table.next()
	if err != nil {
		return nil, err
	}
	row := &factsRow{Signals: map[string]float64{}, Categories: []string{}}
	domain := cell{line: line}
	for _, c := range cells {
		if c.name == "domain" {
			domain = c
		}
		column, ok := r.columns[c.name]
		if !ok {
			if column, err = factColumn(c.name); err != nil {
				return nil, err
			}
			r.columns[c.name] = column
		}
		text := strings.TrimSpace(c.text)
		if text == "" {
			continue
		}
		switch {
		case len(text) > textMaxBytes:
			err = fmt.Errorf("longer than %d bytes", textMaxBytes)
		case !utf8.ValidString(text):
			err = fmt.Errorf("%q: not UTF-8", shorten(text))
		default:
			if err = column.set(row, text); err != nil {
				err = fmt.Errorf("%q: %w", shorten(text), err)
			}
		}
		if err != nil {
			return nil, ImportFault{c.line, c.column, c.name, err.Error()}
		}
	}
	if row.Domain == "" {
		return nil, ImportFault{domain.line, domain.column, "domain", "there is no domain"}
	}
	if first, twice := r.seen[row.Domain]; twice {
		return nil, ImportFault{domain.line, domain.column, "domain", fmt.Sprintf("%s stands in line %d already", row.Domain, first)}
	}
	r.seen[strings.Clone(row.Domain)] = line // not a part of the whole line
	return row, nil
}

func shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

// checkColumns refuses the columns of a file that do not make sense together.
func checkColumns(names []string) error {
	for i, name := range names {
		if _, err := factColumn(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("column %q stands there twice", name)
		}
	}
	if !slices.Contains(names, "domain") {
		return errors.New(`there is no column "domain"`)
	}
	return nil
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
		r = newJSONTable(f, info.Size())
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
