// Package backtest measures what scores are worth. It scores the companies of a file from their
// facts alone and compares the scores with outcomes in the same file. It needs no store.
package backtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/facts"
	"companyscore/scoring"
)

// Config has the settings of a back-test.
type Config struct {
	// Path is the file.
	Path string
	// Outcomes are the columns with outcomes, at least one.
	Outcomes []string
	// Good and Bad are the values of a column of classes, in any case. Both are empty, or both are given
	// for a single outcome.
	Good, Bad []string
	// Now is the instant for which companies are scored.
	Now time.Time
}

const (
	// companiesMax is the largest number of companies in a file.
	companiesMax = 1_000_000
	// sampleMax is the number of companies that cliffs and coverage are measured on.
	sampleMax = 2000
	// monotoneMax is the number of companies whose facts are raised.
	monotoneMax = 1000
	// draws is the number of draws of half of the facts.
	draws = 8
	// folds is the number of parts of the sample in a draw. The spreads for one part are those of the others.
	folds = 10
	// seed is the seed of samples and draws.
	seed = 17
)

// ErrInput is wrapped by errors of Run about the file, its columns and values.
var ErrInput = errors.New("input")

func inputError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInput, fmt.Sprintf(format, args...))
}

// Run reads a file and returns its report. Its errors wrap ErrInput if the file, a column or its
// values do not allow a back-test. The memory grows with the number of companies by some numbers each;
// all facts are kept of a random sample only.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r, err := newReader(cfg)
	if err != nil {
		return nil, err
	}
	defer r.file.Close()
	if err := r.readAll(ctx); err != nil {
		return nil, err
	}
	report := &Report{
		File: cfg.Path, PipelineVersion: scoring.PipelineVersion, At: cfg.Now.Format(time.DateOnly),
		Rows: r.rows, Companies: len(r.composites), Invalid: r.rows - len(r.composites), Faults: r.faults,
		Ignored: r.ignored(), Sample: len(r.sample), MonotoneSample: min(len(r.sample), monotoneMax), Draws: []Coverage{},
	}
	for _, o := range r.outcomes {
		measured, err := o.measure()
		if err != nil {
			return nil, err
		}
		report.Outcomes = append(report.Outcomes, measured)
	}
	report.describe(r.composites)
	if report.Cliffs, err = measureCliffs(ctx, r.sample, cfg.Now); err != nil {
		return nil, err
	}
	if report.Monotone, err = measureMonotone(ctx, r.sample[:report.MonotoneSample], cfg.Now); err != nil {
		return nil, err
	}
	for draw := range uint64(draws) {
		c, err := measureCoverage(ctx, r.sample, cfg.Now, rand.New(rand.NewPCG(seed, draw)))
		if err != nil {
			return nil, err
		}
		report.Draws = append(report.Draws, c)
	}
	report.Coverage = meanCoverage(report.Draws)
	return report, nil
}

// reader scores the rows of a file and collects what is measured.
type reader struct {
	cfg        Config
	file       *facts.Reader
	outcomes   []*outcome
	rows       int
	composites []float64
	faults     []facts.Fault
	sample     []scoring.CompanyFacts
	rng        *rand.Rand
}

// faultMax is the number of faults that are kept.
const faultMax = 1000

func newReader(cfg Config) (*reader, error) {
	if len(cfg.Outcomes) == 0 {
		return nil, inputError("no outcome column is named")
	}
	if (len(cfg.Good) == 0) != (len(cfg.Bad) == 0) {
		return nil, inputError("classes need both good and bad values")
	}
	if len(cfg.Good) > 0 && len(cfg.Outcomes) > 1 {
		return nil, inputError("good and bad values are for a single outcome column, not for %d", len(cfg.Outcomes))
	}
	r := &reader{cfg: cfg, rng: rand.New(rand.NewPCG(seed, 0))}
	for i, column := range cfg.Outcomes {
		if slices.Contains(cfg.Outcomes[:i], column) {
			return nil, inputError("outcome column %q is named twice", column)
		}
		o := newOutcome(column, cfg.Good, cfg.Bad)
		for _, value := range o.good {
			if oneOf(o.bad, value) {
				return nil, inputError("%q is both good and bad", value)
			}
		}
		r.outcomes = append(r.outcomes, o)
	}
	var err error
	if r.file, err = facts.OpenWith(cfg.Path, cfg.Outcomes...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return r, nil
}

// readAll reads all rows.
func (r *reader) readAll(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		company, err := r.file.Next()
		if errors.Is(err, io.EOF) {
			r.rng.Shuffle(len(r.sample), func(i, j int) { r.sample[i], r.sample[j] = r.sample[j], r.sample[i] })
			return r.check()
		}
		var fault facts.Fault
		if err != nil && !errors.As(err, &fault) {
			return fmt.Errorf("%w: read %s: %w", ErrInput, r.cfg.Path, err)
		}
		r.rows++
		if err == nil {
			fault, err = r.add(company)
		}
		if err != nil && len(r.faults) < faultMax {
			r.faults = append(r.faults, fault)
		}
		if len(r.composites) > companiesMax {
			return inputError("%s has more than %d companies: split it", r.cfg.Path, companiesMax)
		}
	}
}

// add scores a company. It returns a fault if an outcome is not valid.
func (r *reader) add(company scoring.CompanyFacts) (facts.Fault, error) {
	values := make([]float64, len(r.outcomes))
	for i, o := range r.outcomes {
		v, err := o.parse(r.file.Text(o.column))
		if err != nil {
			fault := facts.Fault{Line: r.file.Line(), Field: o.column, Reason: err.Error()}
			return fault, fault
		}
		values[i] = v
	}
	composite := score(company, r.cfg.Now, nil).Composite
	r.composites = append(r.composites, composite)
	for i, o := range r.outcomes {
		if !math.IsNaN(values[i]) {
			o.add(company, composite, values[i], r.cfg.Now)
		}
	}
	if len(r.sample) < sampleMax {
		r.sample = append(r.sample, company)
	} else if at := r.rng.IntN(len(r.composites)); at < sampleMax {
		r.sample[at] = company
	}
	return facts.Fault{}, nil
}

// check returns an error if the file as a whole does not allow a back-test.
func (r *reader) check() error {
	columns := r.file.Columns()
	for _, o := range r.outcomes {
		if !slices.Contains(columns, o.column) {
			return inputError("%s has no column %q; it has %s", r.cfg.Path, o.column, strings.Join(columns, ", "))
		}
		if o.kind == Numeric && o.known == 0 && len(o.texts) > 0 {
			return inputError("column %q holds no numbers but values such as %s: name the good and the bad ones with --good and --bad",
				o.column, quoted(o.texts))
		}
	}
	if len(r.composites) == 0 {
		return inputError("no usable rows: %s has %d rows, all of them invalid", r.cfg.Path, r.rows)
	}
	return nil
}

// ignored returns the columns that are neither facts nor outcomes.
func (r *reader) ignored() []string {
	return slices.DeleteFunc(slices.Clone(r.file.Columns()), func(column string) bool {
		return facts.Known(column) || slices.Contains(r.cfg.Outcomes, column)
	})
}

// Kind is the kind of an outcome.
type Kind string

// The kinds. Ordered outcomes are classes with an order, which is that of numbers.
const (
	Numeric Kind = "numeric"
	Ordered Kind = "ordered"
	Classes Kind = "classes"
)

// outcome collects composites and the values of an outcome column.
type outcome struct {
	column    string
	kind      Kind
	good, bad []string
	// order are the classes of an ordered outcome, lowest first.
	order []string
	// fact is the fact of the column, nil if it decides no score.
	fact     *fact
	known    int
	others   int
	texts    []string // values that are not numbers, or of no class
	given    []pair
	withheld []pair // with the composite without the fact
	large    []bool
}

func newOutcome(column string, good, bad []string) *outcome {
	o := &outcome{column: column, kind: Numeric, good: good, bad: bad}
	if f, ok := factNamed(column); ok {
		o.fact = &f
	}
	switch {
	case len(good) > 0:
		o.kind = Classes
	case column == status.name:
		o.kind, o.good, o.bad = Classes, []string{"operating"}, []string{"dead"}
	case column == "market_cap_class":
		o.kind, o.order = Ordered, marketCapClasses()
	}
	return o
}

// marketCapClasses returns the classes of market value, lowest first.
func marketCapClasses() []string {
	return slices.SortedFunc(maps.Keys(scoring.MarketCapClasses), func(a, b string) int {
		return cmp.Compare(scoring.MarketCapClasses[a].From, scoring.MarketCapClasses[b].From)
	})
}

// textsMax is the number of values in a message.
const textsMax = 5

// parse returns the outcome as a number, NaN if it is unknown or of no class. Good is 1 and bad is 0.
func (o *outcome) parse(text string) (float64, error) {
	if text == "" {
		return math.NaN(), nil
	}
	switch o.kind {
	case Ordered:
		return float64(slices.Index(o.order, text)), nil // facts have checked it
	case Classes:
		switch {
		case oneOf(o.good, text):
			return 1, nil
		case oneOf(o.bad, text):
			return 0, nil
		}
		o.others++
		o.note(text)
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		o.note(text)
		return 0, fmt.Errorf("%.60q: not a number", text)
	}
	return v, nil
}

// note keeps the first distinct values.
func (o *outcome) note(text string) {
	if len(o.texts) < textsMax && !slices.Contains(o.texts, text) {
		o.texts = append(o.texts, strings.Clone(text[:min(len(text), 60)]))
	}
}

// oneOf reports whether a text is one of some values, in any case.
func oneOf(values []string, text string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, text) })
}

func quoted(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = strconv.Quote(strings.ToValidUTF8(text, ""))
	}
	return strings.Join(all, ", ")
}

// Limits of a large company. A company with a market value is large too.
const (
	largeEmployees = 1000
	largeRevenue   = 100e6
)

func isLarge(c scoring.CompanyFacts) bool {
	return c.Employees != nil && *c.Employees >= largeEmployees || c.RevenueUSD != nil && *c.RevenueUSD >= largeRevenue ||
		c.MarketCapUSD != nil || c.MarketCapClass != ""
}

func (o *outcome) add(company scoring.CompanyFacts, composite, value float64, now time.Time) {
	o.known++
	o.given = append(o.given, pair{composite, value})
	o.large = append(o.large, isLarge(company))
	if o.fact != nil {
		o.withheld = append(o.withheld, pair{scoreWithheld(company, *o.fact, now).Composite, value})
	}
}

// measure returns the figures of the outcome.
func (o *outcome) measure() (Outcome, error) {
	out := Outcome{Column: o.column, Kind: o.kind, Companies: o.known, Fact: o.fact != nil, Good: o.good, Bad: o.bad, Order: o.order,
		Others: o.others, given: o.given, without: o.withheld}
	if o.known == 0 && o.kind == Classes && o.others > 0 {
		return out, inputError("no usable rows: no value of column %q is good (%s) or bad (%s); it has values such as %s",
			o.column, strings.Join(o.good, ", "), strings.Join(o.bad, ", "), quoted(o.texts))
	}
	if o.known == 0 {
		return out, inputError("no usable rows: no valid row has a value in column %q", o.column)
	}
	differs := func(p pair) bool { return p.outcome != o.given[0].outcome }
	switch one := !slices.ContainsFunc(o.given, differs); {
	case one && o.kind == Classes && o.given[0].outcome == 1:
		return out, inputError("column %q has one class only: %d companies are good (%s) and none is bad (%s)", o.column, o.known,
			strings.Join(o.good, ", "), strings.Join(o.bad, ", "))
	case one && o.kind == Classes:
		return out, inputError("column %q has one class only: %d companies are bad (%s) and none is good (%s)", o.column, o.known,
			strings.Join(o.bad, ", "), strings.Join(o.good, ", "))
	case one && o.kind == Ordered:
		return out, inputError("column %q has one class only: all %d companies are %s", o.column, o.known, o.order[int(o.given[0].outcome)])
	case one:
		return out, inputError("column %q has one value only: %d companies have %v", o.column, o.known, o.given[0].outcome)
	case o.kind != Classes && o.known < correlationMin:
		return out, inputError("too few usable rows: %d companies have a value in column %q, and a correlation needs %d", o.known, o.column,
			correlationMin)
	}
	out.Given = o.figures(o.given)
	if o.fact != nil {
		withheld := o.figures(o.withheld)
		out.Withheld = &withheld
	}
	return out, nil
}

func (o *outcome) figures(pairs []pair) Figures {
	var large, others []pair
	for i, p := range pairs {
		if o.large[i] {
			large = append(large, p)
		} else {
			others = append(others, p)
		}
	}
	if o.kind == Classes {
		return Figures{AUC: separate(split(pairs)), AUCLarge: separate(split(large)), AUCOthers: separate(split(others))}
	}
	return Figures{Spearman: correlate(pairs), SpearmanLarge: correlate(large)}
}

// split returns the composites of good and of bad companies.
func split(pairs []pair) (good, bad []float64) {
	for _, p := range pairs {
		if p.outcome == 1 {
			good = append(good, p.composite)
		} else {
			bad = append(bad, p.composite)
		}
	}
	return good, bad
}
