// Package explain shows where a score comes from, signal by signal, as text and as JSON.
package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"companyscore/scoring"
)

// Explanation is a record with all that led to it.
type Explanation struct {
	Domain          string    `json:"domain"`
	CompanyName     string    `json:"company_name"`
	ScoredAt        time.Time `json:"scored_at"`
	AgeSeconds      int64     `json:"age_seconds"`
	RunID           string    `json:"run_id"`
	PipelineVersion string    `json:"pipeline_version"`
	Country         string    `json:"country"`
	Sector          string    `json:"sector"`
	GeoScope        string    `json:"geo_scope"`
	CompletenessPct float64   `json:"data_completeness_pct"`
	Confidence      string    `json:"confidence"`
	// Interval is the likely range of the composite if all signals were known.
	Interval          scoring.Interval `json:"interval"`
	ExpectedComposite float64          `json:"expected_composite"`
	scoring.Explanation
	// Identity is empty, and so are Sources, Observations and Values, for a record of
	// imported facts alone.
	Identity     []scoring.Claim    `json:"identity"`
	Sources      []Source           `json:"sources"`
	Observations []Observation      `json:"observations"`
	Values       map[string]float64 `json:"values"`
	Warnings     []scoring.Warning  `json:"warnings"`
}

// Source is the outcome of one source.
type Source struct {
	scoring.SourceTrace
	TookMs int64 `json:"took_ms"`
}

// Observation is the value of a signal from one source, used or not.
type Observation struct {
	Signal string         `json:"signal"`
	Source string         `json:"source"`
	State  scoring.State  `json:"state"`
	Raw    *float64       `json:"raw"`
	Reason scoring.Reason `json:"reason,omitempty"`
}

// New returns the explanation of a record. The trace is empty for a record of imported
// facts alone. Ages are counted until now.
func New(rec scoring.Record, trace scoring.Trace, now time.Time) Explanation {
	x := Explanation{
		Domain: rec.Domain, CompanyName: rec.CompanyName, ScoredAt: rec.ScoredAt, AgeSeconds: int64(now.Sub(rec.ScoredAt).Seconds()),
		RunID:           rec.RunID,
		PipelineVersion: rec.PipelineVersion, Country: rec.Country, Sector: rec.Sector, GeoScope: rec.GeoScope,
		CompletenessPct: rec.CompletenessPct, Confidence: string(rec.Confidence), Interval: rec.Interval,
		ExpectedComposite: rec.ExpectedComposite,
		Explanation:       scoring.Explain(rec), Identity: append([]scoring.Claim{}, trace.Claims...), Sources: []Source{},
		Observations: []Observation{},
		Values:       trace.Values, Warnings: append([]scoring.Warning{}, rec.Warnings...),
	}
	for _, s := range trace.Sources {
		x.Sources = append(x.Sources, Source{s, s.Took.Milliseconds()})
	}
	for _, o := range trace.Observations {
		observation := Observation{Signal: o.Signal, Source: o.Source, State: o.State, Reason: o.Reason}
		if o.State == scoring.StateOK {
			observation.Raw = &o.Raw
		}
		x.Observations = append(x.Observations, observation)
	}
	return x
}

// observed returns how long ago a value of the last two days was observed, and the day of an older one.
func observed(at, now time.Time) string {
	if age := now.Sub(at); age < 48*time.Hour {
		return age.Truncate(time.Second).String() + " ago"
	}
	return at.Format(time.DateOnly)
}

// Text writes the explanation as text. It quotes text that came from elsewhere, which
// might imitate ours.
func (x Explanation) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	age := time.Duration(x.AgeSeconds) * time.Second
	if x.CompletenessPct > 0 {
		fmt.Fprintf(w, "%s (%q): %s, %.1f, likely %.0f to %.0f; %.1f %% of the data, confidence %s\n", x.Domain, x.CompanyName, x.Rating,
			x.Composite, x.Interval.Low, x.Interval.High, x.CompletenessPct, x.Confidence)
	} else {
		fmt.Fprintf(w, "%s (%q): nothing is known yet; %.1f (%s) is the neutral composite and says nothing about the company\n", x.Domain,
			x.CompanyName, x.Composite, x.Rating)
	}
	fmt.Fprintf(w, "scored %s (%s ago) by run %s, pipeline %s; %s, country %q, %s\n", x.ScoredAt.Format(time.RFC3339), age, x.RunID,
		x.PipelineVersion, x.Sector, x.Country, x.GeoScope)
	for _, b := range x.Buckets {
		fmt.Fprintf(w, "\n%s: score %.4f, weight %.2f, adds %.4f; %.1f %% of its data\n", b.Bucket, b.Score, b.Weight, b.Contribution,
			b.CompletenessPct)
		fmt.Fprintln(w, "  SIGNAL\tRAW\tUNIT\tSCORE\tWEIGHT\tADDS\tSOURCE\tOBSERVED")
		for _, s := range x.Signals {
			if s.Bucket != b.Bucket {
				continue
			}
			raw, from, seen := "-", s.Source, "-"
			if s.Origin != "" {
				from += " of " + s.Origin
			}
			if s.ObservedAt != nil {
				seen = observed(*s.ObservedAt, x.ScoredAt.Add(age))
			}
			if s.Raw != nil {
				raw = strconv.FormatFloat(*s.Raw, 'g', 7, 64)
			}
			switch s.State {
			case scoring.StateAbsent:
				from += ": none"
			case scoring.StateMissing:
				from = strings.TrimPrefix(s.Source+": "+string(s.Reason), ": ")
			case scoring.StateNotApplicable:
				from = "not applicable"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%.4f\t%.2f\t%.4f\t%s\t%s\n", s.ID, raw, s.Unit, s.Score, s.Weight, s.Contribution, from, seen)
		}
	}
	fmt.Fprintf(w, "\nbase %.4f\n", x.Base)
	fmt.Fprintf(w, "premium for scale: 12 times %.4f, %.1f points (profile %s)\n", x.Premium.Scale, x.Premium.Points, x.Premium.Profile)
	for _, p := range x.Premium.Parts {
		share := "unknown"
		if p.Known {
			share = strconv.FormatFloat(p.Share, 'f', 4, 64)
		}
		fmt.Fprintf(w, "  %s\t%s\tweight %.2f\n", p.Signal, share, p.Weight)
	}
	if x.Defunct {
		fmt.Fprintf(w, "the company is defunct: momentum and premium are 0, and the composite is at most %d\n", scoring.DefunctMax)
	}
	fmt.Fprintf(w, "composite %.1f, which is %s (from %.1f)\n", x.Composite, x.Rating, x.RatingFrom)
	if len(x.Identity) > 0 {
		fmt.Fprint(w, "\nwho it is, the most trusted first:\n  WHAT\tVALUE\tSOURCE\tEVIDENCE\n")
	}
	for _, claim := range x.Identity {
		source := claim.Source
		if claim.Via != "" {
			source += " (" + claim.Via + ")"
		}
		fmt.Fprintf(w, "  %s\t%q\t%s\t%q\n", claim.Kind, claim.Value, source, claim.Evidence)
	}
	if len(x.Sources) > 0 {
		fmt.Fprint(w, "\nsources:\n  SOURCE\tOUTCOME\tTOOK\n")
	}
	for _, s := range x.Sources {
		fmt.Fprintf(w, "  %s\t%s\t%d ms\n", s.Source, s.Outcome, s.TookMs)
	}
	if len(x.Warnings) > 0 {
		fmt.Fprint(w, "\nwarnings:\n")
	}
	for _, warning := range x.Warnings {
		fmt.Fprintf(w, "  %s\t%s\tat %s\n", warning.Source, warning.Code, warning.At.Format(time.RFC3339))
	}
	return w.Flush()
}
