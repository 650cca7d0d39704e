package explain

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"companyscore/internal/cli"
	"companyscore/scoring"
)

// Change is the difference between two records of a company.
type Change struct {
	Domain        string         `json:"domain"`
	FromScoredAt  time.Time      `json:"from_scored_at"`
	ToScoredAt    time.Time      `json:"to_scored_at"`
	FromComposite float64        `json:"from_composite"`
	ToComposite   float64        `json:"to_composite"`
	FromRating    scoring.Rating `json:"from_rating"`
	ToRating      scoring.Rating `json:"to_rating"`
	scoring.Attribution
	Signals []scoring.SignalChange `json:"signals"`
}

// NewChange returns the difference between two records of a company.
func NewChange(from, to scoring.Record) Change {
	a := scoring.Attribute(from, to)
	return Change{
		Domain: to.Domain, FromScoredAt: from.ScoredAt, ToScoredAt: to.ScoredAt, FromComposite: from.Composite, ToComposite: to.Composite,
		FromRating: from.Rating, ToRating: to.Rating, Attribution: a, Signals: append([]scoring.SignalChange{}, a.Signals...),
	}
}

// Text writes the change as text.
func (c Change) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s: %.1f (%s, %s) to %.1f (%s, %s), a delta of %+.1f\n", c.Domain, c.FromComposite, c.FromRating,
		c.FromScoredAt.Format(time.RFC3339),
		c.ToComposite, c.ToRating, c.ToScoredAt.Format(time.RFC3339), c.Delta)
	for _, part := range []struct {
		name   string
		points float64
		what   string
	}{
		{"observation", c.Observation, "signals that both records know"},
		{"coverage", c.Coverage, "signals that became known, missing or not applicable"},
		{"premium", c.Premium, "premium for scale"},
		{"formula", c.Formula, "another pipeline version"},
		{"defunct", c.Defunct, "the company became defunct, or is no longer"},
	} {
		fmt.Fprintf(w, "  %s\t%+.1f\t%s\n", part.name, part.points, part.what)
	}
	if len(c.Signals) > 0 {
		fmt.Fprint(w, "\n  SIGNAL\tBEFORE\tAFTER\tPOINTS\n")
	}
	for _, s := range c.Signals {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%+.4f\n", s.ID, state(s.Before), state(s.After), s.Contribution)
	}
	return w.Flush()
}

// printed is an explanation or a change.
type printed interface {
	Text(out io.Writer) error
	csv(out io.Writer) error
}

// Print writes an explanation or a change as text, as JSON, or as CSV with a row for each signal.
func Print(out io.Writer, x printed, format cli.Output) error {
	switch format {
	case cli.JSON:
		return cli.PrintJSON(out, x)
	case cli.CSV:
		return x.csv(out)
	}
	return x.Text(out)
}

func (c Change) csv(out io.Writer) error {
	type change = scoring.SignalChange
	return cli.PrintList(out, cli.CSV, c.Signals, []cli.Column[change]{
		{Name: "signal", Value: func(s change) any { return s.ID }},
		{Name: "state_before", Value: func(s change) any { return s.Before.State }},
		{Name: "raw_before", Value: func(s change) any { return s.Before.Raw }},
		{Name: "score_before", Value: func(s change) any { return s.Before.Score }},
		{Name: "state_after", Value: func(s change) any { return s.After.State }},
		{Name: "raw_after", Value: func(s change) any { return s.After.Raw }},
		{Name: "score_after", Value: func(s change) any { return s.After.Score }},
		{Name: "contribution", Value: func(s change) any { return s.Contribution }},
	})
}

func (x Explanation) csv(out io.Writer) error {
	type part = scoring.SignalPart
	return cli.PrintList(out, cli.CSV, x.Signals, []cli.Column[part]{
		{Name: "signal", Value: func(s part) any { return s.ID }},
		{Name: "bucket", Value: func(s part) any { return s.Bucket }},
		{Name: "state", Value: func(s part) any { return s.State }},
		{Name: "raw", Value: func(s part) any { return s.Raw }},
		{Name: "unit", Value: func(s part) any { return s.Unit }},
		{Name: "score", Value: func(s part) any { return s.Score }},
		{Name: "weight", Value: func(s part) any { return s.Weight }},
		{Name: "contribution", Value: func(s part) any { return s.Contribution }},
		{Name: "source", Value: func(s part) any { return s.Source }},
		{Name: "reason", Value: func(s part) any { return s.Reason }},
		{Name: "observed_at", Value: func(s part) any { return s.ObservedAt }},
	})
}

// state returns the raw value of a signal, or its state.
func state(s scoring.SignalState) string {
	if s.Raw == nil {
		return string(s.State)
	}
	return strconv.FormatFloat(*s.Raw, 'g', 7, 64)
}
