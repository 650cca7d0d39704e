package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

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
	fmt.Fprintf(w, "%s: %.1f (%s, %s) to %.1f (%s, %s), a delta of %+.1f\n", c.Domain, c.FromComposite, c.FromRating, c.FromScoredAt.Format(time.RFC3339),
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

// Print writes an explanation or a change as text, or as indented JSON.
func Print(out io.Writer, x interface{ Text(io.Writer) error }, asJSON bool) error {
	if !asJSON {
		return x.Text(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(x)
}

// state returns the raw value of a signal, or its state.
func state(s scoring.SignalState) string {
	if s.Raw == nil {
		return string(s.State)
	}
	return strconv.FormatFloat(*s.Raw, 'g', 7, 64)
}
