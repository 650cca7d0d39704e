package backtest

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"companyscore/scoring"
)

// Text writes the report as tables.
func (r *Report) Text(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, r.summary())
	for _, t := range r.tables() {
		t.text(w)
	}
	return w.Flush()
}

// summary returns what was scored in one sentence.
func (r *Report) summary() string {
	text := fmt.Sprintf("%s: %d companies scored from facts alone for %s, pipeline %s", r.File, r.Companies, r.At, r.PipelineVersion)
	if r.Invalid > 0 {
		text += fmt.Sprintf("; %d of %d rows are invalid", r.Invalid, r.Rows)
	}
	if len(r.Ignored) > 0 {
		text += "; ignored columns: " + strings.Join(r.Ignored, ", ")
	}
	return text
}

// table is a table of the report. The cells of the first column are aligned left, the others right.
type table struct {
	Title string
	Head  []string
	Rows  [][]string
	Note  string
}

func (t *table) row(cells ...string) { t.Rows = append(t.Rows, cells) }

func (t *table) text(w io.Writer) {
	widths := make([]int, len(t.Head))
	lines := append([][]string{t.Head}, t.Rows...)
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintf(w, "\n%s\n", t.Title)
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("  " + cell + space)
			} else {
				b.WriteString("  " + space + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	if t.Note != "" {
		fmt.Fprintf(w, "  %s\n", t.Note)
	}
}

// tables returns the report as tables.
func (r *Report) tables() []table {
	all := []table{r.compositeTable(), r.gradeTable()}
	for _, o := range r.Outcomes {
		all = append(all, o.table())
	}
	all = append(all, r.cliffTable())
	if len(r.Cliffs.Largest) > 0 {
		all = append(all, r.largestTable())
	}
	return append(all, r.monotoneTable(), r.coverageTable())
}

func points(x float64) string  { return fmt.Sprintf("%.1f", x) }
func percent(x float64) string { return fmt.Sprintf("%.1f %%", x) }
func count(n int) string       { return fmt.Sprint(n) }

func (r *Report) compositeTable() table {
	d := r.Composites
	t := table{Title: "Composites", Head: []string{"companies", "lowest", "p10", "median", "p90", "highest", "most frequent",
		"share of it"}}
	t.row(count(r.Companies), points(d.Min), points(d.P10), points(d.Median), points(d.P90), points(d.Max), points(r.TiesAt),
		percent(r.TiesPct))
	return t
}

func (r *Report) gradeTable() table {
	t := table{Title: fmt.Sprintf("Grades: %d of %d are used", r.GradesUsed, len(r.Grades)), Head: []string{"grade", "companies", "share"}}
	for _, g := range r.Grades {
		t.row(string(g.Grade), count(g.Companies), percent(g.SharePct))
	}
	return t
}

// title returns column and values of the outcome.
func (o *Outcome) title() string {
	switch o.Kind {
	case Classes:
		text := fmt.Sprintf("Outcome %s: %s against %s", o.Column, strings.Join(o.Good, ", "), strings.Join(o.Bad, ", "))
		if o.Others > 0 {
			text += fmt.Sprintf("; %d companies with other values are left out", o.Others)
		}
		return text
	case Ordered:
		return fmt.Sprintf("Outcome %s: %s", o.Column, strings.Join(o.Order, " < "))
	}
	return fmt.Sprintf("Outcome %s: by rank", o.Column)
}

func (o *Outcome) table() table {
	t := table{Title: o.title(), Head: []string{"figure", "outcome", "companies", "value", "95 % from", "to"}}
	add := func(figure, seen string, e *Estimate) {
		if e == nil {
			t.row(figure, seen, "", "none", "", "")
			return
		}
		number := func(x float64) string { return fmt.Sprintf("%.3f", x) }
		t.row(figure, seen, count(e.Companies), number(e.Value), number(e.Low), number(e.High))
	}
	for _, m := range o.measures() {
		if o.Kind == Classes {
			add("AUC", m.seen, m.figures.AUC)
			add("AUC among the large", m.seen, m.figures.AUCLarge)
			add("AUC among the others", m.seen, m.figures.AUCOthers)
			continue
		}
		add("Spearman", m.seen, m.figures.Spearman)
		add("Spearman among the large", m.seen, m.figures.SpearmanLarge)
	}
	if o.Fact {
		t.Note = "A score that has been given the outcome proves nothing about it. Only withheld shows a prediction."
	} else {
		t.Note = "The column is no fact: the score has not been given it."
	}
	return t
}

// measure is one comparison of scores with an outcome.
type measure struct {
	seen    string
	figures Figures
	pairs   []pair
}

// measures returns the comparison with the outcome given to the score, and that with it withheld. A
// column that is no fact is withheld always.
func (o *Outcome) measures() []measure {
	if o.Withheld == nil {
		return []measure{{"withheld", o.Given, o.given}}
	}
	return []measure{{"given", o.Given, o.given}, {"withheld", *o.Withheld, o.without}}
}

func (r *Report) cliffTable() table {
	t := table{
		Title: fmt.Sprintf("One fact left out, in points: %d companies, %d cases, the status apart", r.Sample, r.Cliffs.Cases),
		Head:  []string{"fact", "cases", "median", "p95", "largest", "above 3"},
		Note: fmt.Sprintf("Largest %.1f. Above 3 points: %.2f %% of the cases. Above 5 points: %.2f %%.", r.Cliffs.Max, r.Cliffs.Above3,
			r.Cliffs.Above5),
	}
	for _, f := range r.Cliffs.Facts {
		t.row(f.Fact, count(f.Cases), points(f.Median), points(f.P95), points(f.Max), percent(f.Above3))
	}
	return t
}

func (r *Report) largestTable() table {
	t := table{Title: "Largest effects of one fact left out", Head: []string{"company", "fact", "points"}}
	for _, c := range r.Cliffs.Largest {
		t.row(c.Domain, c.Fact, fmt.Sprintf("%+.1f", c.Points))
	}
	return t
}

func (r *Report) monotoneTable() table {
	t := table{Title: fmt.Sprintf("One fact raised: %d companies", r.MonotoneSample), Head: []string{"fact", "steps", "composite fell",
		"largest fall", "of"}}
	for _, m := range r.Monotone {
		t.row(m.Fact, count(m.Steps), count(m.Lowered), points(m.Worst), m.Domain)
	}
	return t
}

func (r *Report) coverageTable() table {
	t := table{
		Title: fmt.Sprintf("Intervals from half of the facts: %d companies, %d %% should hold the score from all facts", r.Sample,
			scoring.IntervalLevel),
		Head: []string{"draw", "cases", "hold it", "width", "width with all that is missing"},
	}
	add := func(name string, c Coverage) {
		t.row(name, count(c.Cases), percent(c.SharePct), points(c.Width), points(c.FullWidth))
	}
	for i, c := range r.Draws {
		add(count(i+1), c)
	}
	add("all", r.Coverage)
	return t
}
