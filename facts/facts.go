// Package facts reads company facts from CSV, JSONL and Parquet files. It defines the
// columns of these files and their bounds, and imports no store.
package facts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"companyscore/scoring"
)

// Fault is an error in one row.
type Fault struct {
	// Line is the line of the file, from 1; for Parquet the number of the row.
	Line int
	// Column is the byte in the line, from 1; 0 if unknown or for Parquet.
	Column int
	// Field is the name of the column, empty if the fault concerns the whole row.
	Field  string
	Reason string
}

// Error returns line, column, field and reason.
func (f Fault) Error() string {
	place := "line " + strconv.Itoa(f.Line)
	if f.Column > 0 {
		place += ", column " + strconv.Itoa(f.Column)
	}
	if f.Field != "" {
		place += " (" + f.Field + ")"
	}
	return place + ": " + f.Reason
}

// Report is the result of an import.
type Report struct {
	// Rows is the number of rows read, Imported that of rows stored.
	Rows, Imported int
	// Faults has the first 1000 faults; FaultsOmitted counts the others.
	Faults        []Fault
	FaultsOmitted int
}

const (
	faultMax = 1000
	pageSize = 5000 // companies per insert
)

// Store stores facts.
type Store interface {
	// Insert stores facts of companies and returns when they are durable. Each domain
	// occurs once. The facts replace earlier ones of the same companies.
	Insert(ctx context.Context, companies []scoring.CompanyFacts) error
}

// Import reads a .csv, .jsonl (or .ndjson) or .parquet file and stores its valid rows.
// The report lists invalid rows. If Import returns an error, some rows may be stored; the
// import may be repeated.
//
// Import streams the file. Memory grows only with the number of domains. It calls progress
// after each insert with the bytes read and the size of the file; progress may be nil.
func Import(ctx context.Context, store Store, path string, progress func(read, total int64)) (Report, error) {
	reader, err := Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("import %s: %w", path, err)
	}
	defer reader.Close()
	report, err := importAll(ctx, store, reader, progress)
	if err != nil {
		err = fmt.Errorf("import %s: %w", path, err)
	}
	return report, err
}

// ImportCSV is Import for the text of a CSV file.
func ImportCSV(ctx context.Context, store Store, text []byte) (Report, error) {
	t, err := newCSVTable(io.NopCloser(bytes.NewReader(text)), int64(len(text)), false)
	if err != nil {
		return Report{}, fmt.Errorf("import facts: %w", err)
	}
	report, err := importAll(ctx, store, newReader(t, false, nil), nil)
	if err != nil {
		err = fmt.Errorf("import facts: %w", err)
	}
	return report, err
}

func importAll(ctx context.Context, store Store, reader *Reader, progress func(read, total int64)) (report Report, err error) {
	var page []scoring.CompanyFacts
	flush := func() error {
		if err := store.Insert(ctx, page); err != nil {
			return err
		}
		report.Imported += len(page)
		page = page[:0]
		if progress != nil {
			progress(reader.table.progress())
		}
		return nil
	}
	for ctx.Err() == nil {
		company, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return report, flush()
		}
		var fault Fault
		if err != nil && !errors.As(err, &fault) {
			return report, err
		}
		report.Rows++
		if err != nil {
			report.add(fault)
			continue
		}
		if page = append(page, company); len(page) >= pageSize {
			if err := flush(); err != nil {
				return report, err
			}
		}
	}
	return report, context.Cause(ctx)
}

func (r *Report) add(fault Fault) {
	if len(r.Faults) < faultMax {
		r.Faults = append(r.Faults, fault)
	} else {
		r.FaultsOmitted++
	}
}

// cell is one value of a row as text. line and column are its position; column is the
// byte in the line, 0 for Parquet.
type cell struct {
	name, text   string
	line, column int
}

// table reads the rows of a file in order. next returns io.EOF at the end and a Fault for
// an invalid row. The cells are valid until the next call.
type table interface {
	// names returns the names of the columns, of JSONL those in the lines read so far.
	names() []string
	next() (line int, cells []cell, err error)
	progress() (read, total int64)
	Close() error
}

// Reader reads facts from a file. It is not safe for concurrent use.
type Reader struct {
	table   table
	columns map[string]Column
	seen    map[string]int // line per domain
	others  bool           // whether columns that are no facts are allowed
	keep    []string
	kept    map[string]string // values of keep in the last row
	line    int
}

// Open opens a file. The extension of its name determines the type. Open returns an error
// for an unknown type, and for unknown columns of a CSV or Parquet file.
func Open(path string) (*Reader, error) { return open(path, false, nil) }

// OpenWith is Open for a file that may have columns that are no facts. Next checks their length and
// encoding only. Text returns the values of the columns keep.
func OpenWith(path string, keep ...string) (*Reader, error) { return open(path, true, keep) }

func open(path string, others bool, keep []string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var t table
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		t, err = newCSVTable(f, info.Size(), others)
	case ".jsonl", ".ndjson":
		t = newJSONTable(f, info.Size(), others)
	case ".parquet":
		t, err = newParquetTable(f, info.Size(), others)
	default:
		err = fmt.Errorf("file type %q: use .csv, .jsonl or .parquet", ext)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return newReader(t, others, keep), nil
}

func newReader(t table, others bool, keep []string) *Reader {
	return &Reader{table: t, columns: make(map[string]Column), seen: make(map[string]int), others: others, keep: keep,
		kept: make(map[string]string)}
}

// Close closes the file.
func (r *Reader) Close() error { return r.table.Close() }

// Columns returns the names of the columns in the file, of JSONL those in the lines read so far.
func (r *Reader) Columns() []string { return r.table.names() }

// Text returns the value of a column to keep in the last row, without surrounding space. It is empty
// if the row has none.
func (r *Reader) Text(column string) string { return r.kept[column] }

// Line returns the line of the last row, for Parquet its number.
func (r *Reader) Line() int { return r.line }

// Next returns the facts of the next row. The error is io.EOF at the end and a [Fault] for
// an invalid row. The caller may continue after a Fault, but not after another error.
func (r *Reader) Next() (scoring.CompanyFacts, error) {
	line, cells, err := r.table.next()
	if err != nil {
		return scoring.CompanyFacts{}, err
	}
	company := scoring.CompanyFacts{Signals: map[string]float64{}, Categories: []string{}}
	domain := cell{line: line}
	clear(r.kept)
	r.line = line
	for _, c := range cells {
		if c.name == "domain" {
			domain = c
		}
		column, ok := r.columns[c.name]
		if !ok {
			if column, err = columnOf(c.name, r.others); err != nil {
				return scoring.CompanyFacts{}, err
			}
			r.columns[c.name] = column
		}
		text := strings.TrimSpace(c.text)
		if slices.Contains(r.keep, c.name) {
			r.kept[c.name] = text
		}
		if text == "" {
			continue
		}
		switch {
		case len(text) > textMaxBytes:
			err = fmt.Errorf("longer than %d bytes", textMaxBytes)
		case !utf8.ValidString(text):
			err = fmt.Errorf("%q: not UTF-8", shorten(text))
		default:
			if err = column.set(&company, text); err != nil {
				err = fmt.Errorf("%q: %w", shorten(text), err)
			}
		}
		if err != nil {
			return scoring.CompanyFacts{}, Fault{c.line, c.column, c.name, err.Error()}
		}
	}
	if company.Domain == "" {
		return scoring.CompanyFacts{}, Fault{domain.line, domain.column, "domain", "no domain"}
	}
	if first, twice := r.seen[company.Domain]; twice {
		return scoring.CompanyFacts{}, Fault{domain.line, domain.column, "domain", fmt.Sprintf("%s stands in line %d already",
			company.Domain, first)}
	}
	r.seen[strings.Clone(company.Domain)] = line // a substring would keep the whole line in memory
	return company, nil
}

func shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

// checkColumns returns an error for repeated columns, for columns that are no facts unless others is set,
// and if column domain is missing.
func checkColumns(names []string, others bool) error {
	for i, name := range names {
		if _, err := columnOf(name, others); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("duplicate column %q", name)
		}
	}
	if !slices.Contains(names, "domain") {
		return errors.New(`no column "domain"`)
	}
	return nil
}
