// Package facts reads company facts from CSV, JSONL and Parquet files. It knows the
// columns of such files and their bounds, and no store.
package facts

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
	"unicode/utf8"

	"companyscore/scoring"
)

// Fault is an error of one row.
type Fault struct {
	// Line of the file, from 1; the number of the row for Parquet.
	Line int
	// Column is the byte in the line, from 1; 0 where the format has none.
	Column int
	// Field is the name of the column, empty when the fault is of the whole row.
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
	// Rows were read, Imported of them stored.
	Rows, Imported int
	// Faults holds the first thousand; FaultsOmitted counts the others.
	Faults        []Fault
	FaultsOmitted int
}

const (
	faultMax = 1000
	pageSize = 5000 // companies of one insert
)

// Store stores facts.
type Store interface {
	// Insert stores facts of companies, each domain once, and returns when they are
	// durable. It replaces what was stored of these companies before.
	Insert(ctx context.Context, companies []scoring.CompanyFacts) error
}

// Import reads a .csv, .jsonl (or .ndjson) or .parquet file and stores its good rows.
// Bad rows are in the report and do not stop the others. An error means that the
// import stopped: some rows may be stored, and repeating the import is harmless.
//
// The file is read as a stream; memory grows with the number of domains only. After
// each insert progress is called with the bytes read and the size of the file; it may
// be nil.
func Import(ctx context.Context, store Store, path string, progress func(read, total int64)) (Report, error) {
	report, err := importFile(ctx, store, path, progress)
	if err != nil {
		err = fmt.Errorf("import %s: %w", path, err)
	}
	return report, err
}

func importFile(ctx context.Context, store Store, path string, progress func(read, total int64)) (report Report, err error) {
	reader, err := Open(path)
	if err != nil {
		return report, err
	}
	defer reader.Close()
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

// cell is one value of a row as text, with the place where it begins: the line,
// and the byte in the line, 0 where the format has none.
type cell struct {
	name, text   string
	line, column int
}

// table reads the rows of a file one after the other. next returns io.EOF at the end
// and a Fault for a row that cannot be read; the cells are valid until the next call.
type table interface {
	next() (line int, cells []cell, err error)
	progress() (read, total int64)
	Close() error
}

// Reader reads facts from a file. It is not safe for concurrent use.
type Reader struct {
	table   table
	columns map[string]Column
	seen    map[string]int // line of each domain
}

// Open opens a file; its type follows from the ending of its name. It returns an error
// for a type or columns that are not known.
func Open(path string) (*Reader, error) {
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
		t, err = newCSVTable(f, info.Size())
	case ".jsonl", ".ndjson":
		t = newJSONTable(f, info.Size())
	case ".parquet":
		t, err = newParquetTable(f, info.Size())
	default:
		err = fmt.Errorf("file type %q: use .csv, .jsonl or .parquet", ext)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Reader{t, make(map[string]Column), make(map[string]int)}, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.table.Close() }

// Next returns the facts of the next row. The error is io.EOF at the end and a [Fault]
// for a bad row, after which reading can go on. After any other error it cannot.
func (r *Reader) Next() (scoring.CompanyFacts, error) {
	line, cells, err := r.table.next()
	if err != nil {
		return scoring.CompanyFacts{}, err
	}
	company := scoring.CompanyFacts{Signals: map[string]float64{}, Categories: []string{}}
	domain := cell{line: line}
	for _, c := range cells {
		if c.name == "domain" {
			domain = c
		}
		column, ok := r.columns[c.name]
		if !ok {
			if column, err = columnOf(c.name); err != nil {
				return scoring.CompanyFacts{}, err
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
			if err = column.set(&company, text); err != nil {
				err = fmt.Errorf("%q: %w", shorten(text), err)
			}
		}
		if err != nil {
			return scoring.CompanyFacts{}, Fault{c.line, c.column, c.name, err.Error()}
		}
	}
	if company.Domain == "" {
		return scoring.CompanyFacts{}, Fault{domain.line, domain.column, "domain", "there is no domain"}
	}
	if first, twice := r.seen[company.Domain]; twice {
		return scoring.CompanyFacts{}, Fault{domain.line, domain.column, "domain", fmt.Sprintf("%s stands in line %d already", company.Domain, first)}
	}
	r.seen[strings.Clone(company.Domain)] = line // not a part of the whole line
	return company, nil
}

func shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

// checkColumns returns an error for unknown and repeated columns, and when there is
// no domain.
func checkColumns(names []string) error {
	for i, name := range names {
		if _, err := columnOf(name); err != nil {
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
