package recipe

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/facts"
	"companyscore/scoring/source"
)

// Job is what an engine runs.
type Job struct {
	Statement string
	Files     map[string]string // globs of paths of the only files that the statement may read, by the name of their String parameter
	Values    map[string]string // values of other String parameters
	Dir       string            // directory for data of the engine
	Result    string            // path of the result: CSV with the names of the columns in the first line, NULL as an empty value
	Limit     time.Duration     // after which the statement must fail
}

// Engine runs a job and returns the number of rows that it read from files. It must read no other files.
type Engine func(ctx context.Context, job Job) (read uint64, err error)

// Identifiers lists what the service knows about the identity of companies.
type Identifiers interface {
	// Identifiers calls each with every identifier of every company. kind is ticker, cik, lei, isin, github, wikidata, name or domain;
	// value of a name is the company's name as stored, of a domain the domain itself. It returns the first error of each.
	Identifiers(ctx context.Context, each func(domain, kind, value string) error) error
}

// Config describes one import.
type Config struct {
	Recipe      *Recipe
	Files       []string // given files
	Identifiers Identifiers
	Engine      Engine
	Limit       time.Duration // of the statement; 0 means 10 minutes
	Dir         string        // directory of the scratch directory; "" means that of temporary files
	Unmatched   io.Writer     // gets the rows that are not imported, as CSV: subject, reason; may be nil
}

const limitDefault = 10 * time.Minute

// Report counts the rows of an import.
type Report struct {
	Read      uint64            // rows that the statement read from files, also of the identifiers
	Matched   int               // rows of the result that are imported
	Changed   int               // of these, layers that are not as before
	Unmatched map[string]uint64 // other rows of the result by reason
}

// Refused is the error of an import whose result has rows that no import may have.
type Refused struct {
	Faults  []string // the first ones: row of the result, what it is about, and the reason
	Omitted int
}

// Error returns the number of faults and the first one.
func (r *Refused) Error() string {
	return fmt.Sprintf("nothing is imported: %d rows are wrong: %s", len(r.Faults)+r.Omitted, r.Faults[0])
}

// Import runs a recipe over files and stores the rows of its result: all of them, or none if it returns an error. A file that the recipe
// cannot read is an error, and one faulty row is: a *Refused. The origin is the name of the recipe unless opt has one.
func Import(ctx context.Context, store facts.Store, cfg Config, opt facts.Options) (report Report, err error) {
	opt = opt.WithDay()
	opt.Origin, opt.Recipe = cmp.Or(opt.Origin, cfg.Recipe.Name), cfg.Recipe.Name
	s, err := newScratch(cfg.Dir)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	path := filepath.Join(s.path, "result.csv")
	if report.Read, err = s.run(ctx, cfg, opt.Day, path); err != nil {
		return report, err
	}
	rows, err := openResult(path, cfg.Unmatched)
	if err != nil {
		return report, err
	}
	defer rows.Close()
	rows.SetLayer(opt.Origin, opt.Day)
	opt.Rejected = rows.unmatched
	var names []string
	for _, name := range cfg.Files {
		names = append(names, filepath.Base(name))
	}
	done, err := facts.ImportFrom(ctx, store, rows, strings.Join(names, " "), opt)
	report.Matched, report.Changed, report.Unmatched = done.Imported, done.Changed, rows.unmatched
	return report, err
}

// run runs the statement and returns the number of rows that it read. Its result is in the file of path.
func (s *scratch) run(ctx context.Context, cfg Config, day time.Time, path string) (read uint64, err error) {
	files, err := s.place(ctx, cfg.Recipe, cfg.Files)
	if err != nil {
		return 0, err
	}
	for _, p := range files {
		if err := p.checkHeader(); err != nil {
			return 0, err
		}
	}
	job := Job{Statement: cfg.Recipe.Statement, Files: map[string]string{}, Values: map[string]string{dayKey: day.Format(time.DateOnly)},
		Dir: filepath.Join(s.path, "engine"), Result: path, Limit: cmp.Or(cfg.Limit, limitDefault)}
	for _, f := range cfg.Recipe.Files {
		job.Files[f.Key] = filepath.Join(s.path, f.Key, "**")
	}
	job.Files[identifiersKey] = filepath.Join(s.path, "identifiers.tsv")
	if err := writeIdentifiers(ctx, cfg.Identifiers, job.Files[identifiersKey]); err != nil {
		return 0, err
	}
	if read, err = cfg.Engine(ctx, job); err != nil {
		return 0, explain(err, cfg.Recipe, files)
	}
	return read, nil
}

// writeIdentifiers writes the file of identifiers. Names are in the form in which recipes compare them.
func writeIdentifiers(ctx context.Context, from Identifiers, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 64<<10)
	_, _ = out.WriteString("domain\tkind\tvalue\n") // the error is that of Flush
	err = from.Identifiers(ctx, func(domain, kind, value string) error {
		if kind == "name" {
			value = strings.ReplaceAll(source.PlainName(value), " ", "")
		}
		if value == "" || strings.ContainsAny(domain+kind+value, "\t\n\r\\\x00") {
			return nil
		}
		for _, part := range []string{domain, "\t", kind, "\t", value, "\n"} {
			_, err = out.WriteString(part)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read identifiers: %w", err)
	}
	return out.Flush()
}

// Reasons returns the reasons of unmatched rows, the most frequent first.
func (r *Report) Reasons() []string {
	return slices.SortedFunc(maps.Keys(r.Unmatched), func(a, b string) int {
		if n := cmp.Compare(r.Unmatched[b], r.Unmatched[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
}

var (
	atRow    = regexp.MustCompile(`: \(at row (\d+)\)`)
	rowError = regexp.MustCompile(`(?m)^.*\bERROR: (.*)$`)
)

// explain returns an error of the engine with the name and line of the given file. It hides the scratch directory.
func explain(err error, r *Recipe, files []placed) error {
	text := err.Error()
	var in *placed
	for i, p := range files {
		if strings.Contains(text, "(in file/uri "+p.path+")") || strings.Contains(text, "While reading from: "+p.path+":") {
			in = &files[i]
		}
	}
	if in == nil {
		for _, p := range files {
			text = strings.ReplaceAll(text, p.path, p.name)
		}
		return fmt.Errorf("recipe %s: %s", r.Name, text)
	}
	reason, _, _ := strings.Cut(text, ": (at row ")
	reason, _, _ = strings.Cut(reason, ": (in file/uri ")
	reason, _, _ = strings.Cut(reason, ": While reading from: ")
	place := in.name
	if at := atRow.FindStringSubmatch(text); at != nil {
		row, _ := strconv.Atoi(at[1])
		place += ": line " + strconv.Itoa(in.line(row))
	}
	if detail := rowError.FindStringSubmatch(text); detail != nil {
		reason += ": " + detail[1]
	}
	return fmt.Errorf("%s: %s", place, shorten(strings.ReplaceAll(reason, "\n", " ")))
}
