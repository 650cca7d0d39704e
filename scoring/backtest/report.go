package backtest

import (
	"slices"

	"companyscore/facts"
	"companyscore/scoring"
)

// Report is the result of a back-test. Shares are in percent.
type Report struct {
	File            string `json:"file"`
	PipelineVersion string `json:"pipeline_version"`
	// At is the day for which companies were scored.
	At string `json:"at"`
	// Rows are the rows of the file, Companies those that were scored and Invalid the others.
	Rows      int `json:"rows"`
	Companies int `json:"companies"`
	Invalid   int `json:"invalid"`
	// Ignored are the columns that are neither facts nor outcomes.
	Ignored []string `json:"ignored_columns"`
	// Faults are the first 1000 invalid rows.
	Faults   []facts.Fault `json:"-"`
	Outcomes []Outcome     `json:"outcomes"`

	Composites Composites `json:"composites"`
	// TiesPct is the share of the most frequent composite, which is TiesAt.
	TiesPct float64 `json:"ties_pct"`
	TiesAt  float64 `json:"ties_at"`
	Grades  []Grade `json:"grades"`
	// GradesUsed is the number of grades with at least one company.
	GradesUsed int `json:"grades_used"`

	// Sample is the number of companies that cliffs and coverage are measured on, MonotoneSample
	// that of companies whose facts are raised.
	Sample         int        `json:"sample"`
	MonotoneSample int        `json:"monotone_sample"`
	Cliffs         Cliffs     `json:"cliffs"`
	Monotone       []Monotone `json:"monotone"`
	// Coverage is the mean of Draws.
	Coverage Coverage   `json:"coverage"`
	Draws    []Coverage `json:"draws"`
}

// Composites is the distribution of the composites.
type Composites struct {
	Min    float64 `json:"min"`
	P10    float64 `json:"p10"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	Max    float64 `json:"max"`
	// Bins are the numbers of companies per point, the last with 100.
	Bins [100]int `json:"bins"`
}

// Grade is the use of one grade.
type Grade struct {
	Grade     scoring.Rating `json:"grade"`
	Companies int            `json:"companies"`
	SharePct  float64        `json:"share_pct"`
}

// Outcome is the comparison of composites with one outcome column.
type Outcome struct {
	Column string `json:"column"`
	Kind   Kind   `json:"kind"`
	// Companies is the number of companies with an outcome, Others that of companies of no class.
	Companies int `json:"companies"`
	Others    int `json:"others,omitempty"`
	// Good and Bad are the values of classes, Order those of an ordered outcome, lowest first.
	Good  []string `json:"good,omitempty"`
	Bad   []string `json:"bad,omitempty"`
	Order []string `json:"order,omitempty"`
	// Fact reports whether the column is a fact that decides scores. Given is measured on scores that
	// have seen it, which proves nothing about its prediction, and Withheld without it.
	Fact     bool     `json:"fact"`
	Given    Figures  `json:"given"`
	Withheld *Figures `json:"withheld"`

	given, without []pair
}

// Figures compare scores with an outcome. They are nil if the kind of the outcome has no such figure, for too
// few companies or only one class, and if all scores are equal.
type Figures struct {
	Spearman *Estimate `json:"spearman,omitempty"`
	// SpearmanLarge is that among the large companies.
	SpearmanLarge *Estimate `json:"spearman_large,omitempty"`
	AUC           *Estimate `json:"auc,omitempty"`
	// AUCLarge is that among the large companies, AUCOthers that among the others: to tell a large
	// company from a small one is easy.
	AUCLarge  *Estimate `json:"auc_large,omitempty"`
	AUCOthers *Estimate `json:"auc_others,omitempty"`
}

// describe sets the figures of the composites.
func (r *Report) describe(composites []float64) {
	share, at := modalShare(composites)
	r.TiesPct, r.TiesAt = 100*share, at
	counts := make(map[scoring.Rating]int)
	for _, c := range composites {
		counts[scoring.RatingOf(c)]++
		r.Composites.Bins[min(int(c), 99)]++
	}
	for _, grade := range scoring.Ratings() {
		n := counts[grade]
		r.Grades = append(r.Grades, Grade{grade, n, 100 * float64(n) / float64(len(composites))})
		if n > 0 {
			r.GradesUsed++
		}
	}
	rising := slices.Sorted(slices.Values(composites))
	d := &r.Composites
	d.Min, d.P10, d.Median, d.P90, d.Max = rising[0], quantile(rising, 0.1), quantile(rising, 0.5), quantile(rising, 0.9),
		rising[len(rising)-1]
}

// meanCoverage returns the mean of draws with cases, and the number of cases in all of them.
func meanCoverage(draws []Coverage) Coverage {
	var mean Coverage
	for _, d := range draws {
		n := float64(d.Cases)
		mean.Cases += d.Cases
		mean.SharePct += n * d.SharePct
		mean.Width += n * d.Width
		mean.FullWidth += n * d.FullWidth
	}
	if n := float64(mean.Cases); n > 0 {
		mean.SharePct, mean.Width, mean.FullWidth = mean.SharePct/n, mean.Width/n, mean.FullWidth/n
	}
	return mean
}
