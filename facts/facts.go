// Package facts reads company facts from CSV, JSONL and Parquet files and stores them in layers, one
// per company and origin. It defines the columns of these files and their bounds, and imports no
// store.
package facts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"companyscore/internal/table"
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

// Faults are the errors in one row, at least one. errors.As finds the first as a [Fault].
type Faults []Fault

// Error returns the errors, one in each line.
func (f Faults) Error() string { return errors.Join(f.Unwrap()...).Error() }

// Unwrap returns the errors.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i, fault := range f {
		errs[i] = fault
	}
	return errs
}

// Report is the result of an import.
type Report struct {
	// Rows is the number of rows read, Imported that of valid rows, Changed that of layers that were not
	// the same already.
	Rows, Imported, Changed int
	// Faults has the first 1000 faults; FaultsOmitted counts the others.
	Faults        []Fault
	FaultsOmitted int
}

const (
	faultMax = 1000
	pageSize = 50_000 // rows per insert
	// stagedAtOnce is the number of concurrent inserts: one is encoded while the store works on another. Of 2 million rows two
	// inserts take 17 s, one takes 21.
	stagedAtOnce = 2
)

// Store stores facts in layers, one per company and origin.
type Store interface {
	// Stage keeps layers of an import aside and returns when they are durable. Nothing reads them before
	// Commit.
	Stage(ctx context.Context, importID string, layers []scoring.CompanyFacts) error
	// Commit replaces the layers of the staged companies and origins, all of them or, if it fails before
	// it is stored, none. A repeated commit of the same layers changes nothing.
	Commit(ctx context.Context, i table.FactsImport) (table.FactsImport, error)
	// Discard drops what was staged and stores the cause.
	Discard(ctx context.Context, i table.FactsImport, cause error) error
	// Recover completes imports that were committed when a process ended.
	Recover(ctx context.Context) error
}

// Options are how files are imported.
type Options struct {
	// Origin is that of all layers. Empty means the column source of a row, or the name of the file.
	Origin string
	// Day is the day of rows without as_of, and the last one that as_of may have. Zero means today.
	Day time.Time
	// Recipe is the recipe that made the rows, empty for none. Digest is that of table.FactsImport.
	Recipe, Digest string
	// Progress is called after each page with the bytes read and the size of the file; it may be nil.
	Progress func(read, total int64)
	// Rejected counts the rows that the source left out, by reason. It is read after the last row; it may
	// be nil.
	Rejected map[string]uint64
	// Staged is called with the id of the import after all layers are staged, before the commit. If it
	// returns an error, nothing is imported. It may be nil.
	Staged func(ctx context.Context, importID string) error
}

// WithDay returns o with the present day, UTC, if it has none.
func (o Options) WithDay() Options {
	if o.Day.IsZero() {
		o.Day = time.Now().UTC().Truncate(24 * time.Hour)
	}
	return o
}

// Import reads a .csv, .jsonl (or .ndjson) or .parquet file and stores its valid rows: all of them at
// once, or none if it returns an error. The report lists invalid rows.
//
// Import streams the file. Memory grows only with the number of domains.
func Import(ctx context.Context, store Store, path string, opt Options) (Report, error) {
	reader, err := Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("import %s: %w", path, err)
	}
	defer reader.Close()
	return importRows(ctx, store, reader, filepath.Base(path), opt)
}

// ImportCSV is Import for the text of a CSV file with a name.
func ImportCSV(ctx context.Context, store Store, name string, text []byte, opt Options) (Report, error) {
	t, err := newCSVTable(io.NopCloser(bytes.NewReader(text)), int64(len(text)), false)
	if err != nil {
		return Report{}, fmt.Errorf("import %s: %w", name, err)
	}
	return importRows(ctx, store, newReader(t, name, false, nil), name, opt)
}

func importRows(ctx context.Context, store Store, reader *Reader, file string, opt Options) (Report, error) {
	opt = opt.WithDay()
	reader.SetLayer(opt.Origin, opt.Day)
	report, err := ImportFrom(ctx, store, reader, file, opt)
	if err != nil {
		err = fmt.Errorf("import %s: %w", file, err)
	}
	return report, err
}

// Source has the rows of an import. [Reader] is one.
type Source interface {
	// Next returns the layer of the next row. The error is io.EOF at the end, Faults for an invalid row, and
	// another one if nothing may be imported.
	Next() (scoring.CompanyFacts, error)
	// Line returns the line of the last row.
	Line() int
	// Progress returns the bytes read and those in total.
	Progress() (read, total int64)
}

// ImportFrom stores the valid rows of a source as those of a file: all of them at once, or none if it
// returns an error. The source has set origins and days.
func ImportFrom(ctx context.Context, store Store, from Source, file string, opt Options) (report Report, err error) {
	if err := store.Recover(ctx); err != nil {
		return report, err
	}
	i := table.NewImport(table.ImportFile)
	i.File, i.Recipe, i.Digest = file, opt.Recipe, opt.Digest
	if report, i.Origins, err = stage(ctx, store, from, i.ID, opt.Progress); err == nil && report.Imported > 0 {
		i.Rows, i.Matched, i.Rejected = uint64(report.Rows), uint64(report.Imported), opt.Rejected
		for _, n := range opt.Rejected {
			i.Rows += n
		}
		if invalid := report.Rows - report.Imported; invalid > 0 {
			i.Rejected = map[string]uint64{"invalid": uint64(invalid)}
		}
		if opt.Staged != nil {
			err = opt.Staged(ctx, i.ID)
		}
		if err == nil {
			i, err = store.Commit(ctx, i)
			report.Changed = int(i.Changed)
		}
	}
	if err != nil && i.CommittedAt.IsZero() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardMax)
		defer cancel()
		err = errors.Join(err, store.Discard(ending, i, err))
	}
	return report, err
}

// discardMax is the time in which a failed import is dropped.
const discardMax = 10 * time.Second

// stage stages all valid rows and returns their origins. It reads a page while the one before is stored.
func stage(ctx context.Context, store Store, from Source, importID string, progress func(read, total int64)) (report Report,
	origins []string, err error) {
	pages := make(chan []scoring.CompanyFacts)
	work, ctx := errgroup.WithContext(ctx)
	for range stagedAtOnce {
		work.Go(func() error {
			for page := range pages {
				if err := store.Stage(ctx, importID, page); err != nil {
					return err
				}
			}
			return nil
		})
	}
	work.Go(func() (err error) {
		defer close(pages)
		report, origins, err = readPages(ctx, from, func(page []scoring.CompanyFacts) error {
			select {
			case pages <- page:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if progress != nil {
				progress(from.Progress())
			}
			return nil
		})
		return err
	})
	err = work.Wait()
	return report, origins, err
}

// readPages calls store with all valid rows, in pages that it does not use again, and returns their origins.
func readPages(ctx context.Context, from Source, store func(page []scoring.CompanyFacts) error) (report Report, origins []string,
	err error) {
	var page []scoring.CompanyFacts
	for ctx.Err() == nil {
		company, err := from.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(origins)
			return report, origins, store(page)
		}
		var faults Faults
		if err != nil && !errors.As(err, &faults) {
			return report, nil, err
		}
		report.Rows++
		if err != nil {
			report.add(faults)
			continue
		}
		if !slices.Contains(origins, company.Origin) {
			if len(origins) == originsMax {
				return report, nil, fmt.Errorf("line %d: more than %d origins in one file; give one with --origin", from.Line(), originsMax)
			}
			origins = append(origins, company.Origin)
		}
		report.Imported++
		if page = append(page, company); len(page) == pageSize {
			if err := store(page); err != nil {
				return report, nil, err
			}
			page = make([]scoring.CompanyFacts, 0, pageSize)
		}
	}
	return report, nil, context.Cause(ctx)
}

// originsMax is the largest number of origins in one file, and originMaxBytes the length of an origin.
const (
	originsMax     = 1000
	originMaxBytes = 100
)

func (r *Report) add(faults Faults) {
	kept := min(len(faults), faultMax-len(r.Faults))
	r.Faults = append(r.Faults, faults[:kept]...)
	r.FaultsOmitted += len(faults) - kept
}

// cell is one value of a row as text. line and column are its position; column is the
// byte in the line, 0 for Parquet.
type cell struct {
	name, text   string
	line, column int
}

// rows reads the rows of a file in order. next returns io.EOF at the end and a Fault for
// an invalid row. The cells are valid until the next call.
type rows interface {
	// names returns the names of the columns, of JSONL those in the lines read so far.
	names() []string
	next() (line int, cells []cell, err error)
	progress() (read, total int64)
	Close() error
}

// Reader reads facts from a file. It is not safe for concurrent use.
type Reader struct {
	rows    rows
	columns []readColumn   // by the position of a cell
	seen    map[uint64]int // line per domain and origin, which are hashed to save memory
	hash    maphash.Seed
	others  bool      // whether columns that are no facts are allowed
	file    string    // name of the file without extension
	origin  string    // of all rows; empty for that of each row
	day     time.Time // of rows without as_of; zero for none
	keep    []string
	kept    []string // values of keep in the last row
	line    int
}

// readColumn is the column of a cell.
type readColumn struct {
	Column
	name string
	keep int // index in Reader.keep, -1 if it is not kept
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
	var t rows
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
	return newReader(t, filepath.Base(path), others, keep), nil
}

func newReader(t rows, file string, others bool, keep []string) *Reader {
	return &Reader{rows: t, seen: make(map[uint64]int), hash: maphash.MakeSeed(), others: others, keep: keep,
		kept: make([]string, len(keep)),
		file: strings.TrimSuffix(file, filepath.Ext(file))}
}

// Close closes the file.
func (r *Reader) Close() error { return r.rows.Close() }

// Columns returns the names of the columns in the file, of JSONL those in the lines read so far.
func (r *Reader) Columns() []string { return r.rows.names() }

// Text returns the value of a column to keep in the last row, without surrounding space. It is empty
// if the row has none. A row with a fault in a value has all texts.
func (r *Reader) Text(column string) string {
	if i := slices.Index(r.keep, column); i >= 0 {
		return r.kept[i]
	}
	return ""
}

// Line returns the line of the last row, for Parquet its number.
func (r *Reader) Line() int { return r.line }

// Progress returns the bytes read and the size of the file.
func (r *Reader) Progress() (read, total int64) { return r.rows.progress() }

// SetLayer sets the origin of all rows and the day of rows without as_of, which is the last one that as_of may
// have. Without an origin, a row has that of its column source or the name of the file.
func (r *Reader) SetLayer(origin string, day time.Time) { r.origin, r.day = origin, day }

// Next returns the facts of the next row. The error is io.EOF at the end and [Faults] for
// an invalid row. The caller may continue after Faults, but not after another error.
func (r *Reader) Next() (scoring.CompanyFacts, error) {
	line, cells, err := r.rows.next()
	if fault, ok := errors.AsType[Fault](err); ok {
		return scoring.CompanyFacts{}, Faults{fault}
	}
	if err != nil {
		return scoring.CompanyFacts{}, err
	}
	company := scoring.CompanyFacts{Signals: map[string]float64{}, Categories: []string{}}
	domain := cell{line: line}
	clear(r.kept)
	r.line = line
	for i, c := range cells {
		column, err := r.column(i, c.name)
		if err != nil {
			return scoring.CompanyFacts{}, err
		}
		if column.keep >= 0 {
			r.kept[column.keep] = strings.TrimSpace(c.text)
		}
	}
	var faults Faults
	for i, c := range cells {
		column := &r.columns[i]
		if c.name == "domain" {
			domain = c
		}
		text := strings.TrimSpace(c.text)
		if text == "" {
			continue
		}
		var err error
		switch {
		case len(text) > textMaxBytes:
			err = fmt.Errorf("longer than %d bytes", textMaxBytes)
		case !utf8.ValidString(text):
			err = fmt.Errorf("%q: not UTF-8", shorten(text))
		default:
			bound, isBound := strings.CutPrefix(text, ">=")
			if isBound = isBound && column.bounded(); isBound {
				company.AtLeast = append(company.AtLeast, c.name)
				text = strings.TrimSpace(bound)
			}
			if err = column.set(&company, text); err != nil {
				err = fmt.Errorf("%q: %w", shorten(text), err)
			}
		}
		if err != nil {
			faults = append(faults, Fault{c.line, c.column, c.name, err.Error()})
		}
	}
	if strings.TrimSpace(domain.text) == "" {
		faults = append(faults, Fault{domain.line, domain.column, "domain", "no domain"})
	}
	if err := r.place(&company); err != nil {
		faults = append(faults, Fault{domain.line, domain.column, "", err.Error()})
	}
	if faults != nil {
		return scoring.CompanyFacts{}, faults
	}
	key := maphash.Comparable(r.hash, [2]string{company.Domain, company.Origin})
	if first, twice := r.seen[key]; twice {
		return scoring.CompanyFacts{}, Faults{{domain.line, domain.column, "domain", fmt.Sprintf("%s stands in line %d already",
			company.Domain, first)}}
	}
	r.seen[key] = line
	return company, nil
}

// column returns the column of the cell with an index and a name.
func (r *Reader) column(i int, name string) (*readColumn, error) {
	for len(r.columns) <= i {
		r.columns = append(r.columns, readColumn{})
	}
	if c := &r.columns[i]; c.name != name || c.set == nil {
		column, err := columnOf(name, r.others)
		if err != nil {
			return nil, err
		}
		*c = readColumn{column, name, slices.Index(r.keep, name)}
	}
	return &r.columns[i], nil
}

// place sets origin and day of a row.
func (r *Reader) place(company *scoring.CompanyFacts) error {
	company.Origin = cmp.Or(r.origin, company.Source, r.file)
	if len(company.Origin) > originMaxBytes || strings.ContainsFunc(company.Origin, unicode.IsControl) {
		return fmt.Errorf("origin %q: longer than %d bytes or with control characters; give one with --origin", shorten(company.Origin),
			originMaxBytes)
	}
	if company.AsOf.IsZero() {
		company.AsOf = r.day
	}
	if !r.day.IsZero() && company.AsOf.After(r.day) {
		return fmt.Errorf("as_of %s is in the future", company.AsOf.Format(time.DateOnly))
	}
	return nil
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
