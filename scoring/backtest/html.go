package backtest

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page.html").Parse(pageText))

// HTML writes the report as one page that needs no other file and no script.
func (r *Report) HTML(w io.Writer) error {
	return page.Execute(w, struct {
		Summary string
		Tables  []table
		Figures []figure
	}{r.summary(), r.tables(), r.figures()})
}

// figure is a plot with its title and a note.
type figure struct {
	Title, Note string
	Plots       []plot
}

// plot is a drawing. Its SVG has only escaped text.
type plot struct {
	Title string
	SVG   template.HTML
}

func (r *Report) figures() []figure {
	all := []figure{{
		Title: "Composites and grades", Note: "Companies per point of the composite. Bands are the grades.",
		Plots: []plot{{"", histogram(r.Composites)}},
	}}
	for i := range r.Outcomes {
		all = append(all, r.Outcomes[i].figure()...)
	}
	if len(r.Cliffs.Facts) > 0 {
		all = append(all, figure{
			Title: "Effect of one fact left out",
			Note:  "Points without sign: the mark is the median, the bar ends at the 95th percentile, the line at the largest.",
			Plots: []plot{{"", cliffPlot(r.Cliffs.Facts)}},
		})
	}
	if r.Coverage.Cases > 0 {
		all = append(all, figure{
			Title: "Intervals from half of the facts",
			Note:  "Share of intervals that hold the score from all facts, by draw, with 95 % bounds. The band is 85 to 95 %.",
			Plots: []plot{{"", coveragePlot(r.Draws)}},
		})
	}
	return all
}

const boxNote = "Composites by class, with the number of companies: 5th, 25th, 50th, 75th and 95th percentile."

// figure returns the plots of one outcome.
func (o *Outcome) figure() []figure {
	shown := figure{Title: o.title()}
	curves := figure{Title: "ROC curve of " + o.Column,
		Note: "Share of good companies over the share of bad ones, from the highest composite down. The diagonal is chance."}
	for _, m := range o.measures() {
		title := "Outcome " + m.seen
		switch o.Kind {
		case Numeric:
			shown.Note = "Composite over the percentile of the outcome."
			shown.Plots = append(shown.Plots, plot{title, scatter(m.pairs)})
		case Ordered:
			shown.Note = boxNote
			shown.Plots = append(shown.Plots, plot{title, boxes(o.Order, byClass(m.pairs, len(o.Order)))})
		case Classes:
			shown.Note = boxNote
			shown.Plots = append(shown.Plots, plot{title, boxes([]string{"bad", "good"}, byClass(m.pairs, 2))})
			curves.Plots = append(curves.Plots, plot{title, rocPlot(roc(split(m.pairs)))})
		}
	}
	if o.Kind == Classes {
		return []figure{shown, curves}
	}
	return []figure{shown}
}

// byClass returns the composites of each class.
func byClass(pairs []pair, classes int) [][]float64 {
	out := make([][]float64, classes)
	for _, p := range pairs {
		out[int(p.outcome)] = append(out[int(p.outcome)], p.composite)
	}
	return out
}
