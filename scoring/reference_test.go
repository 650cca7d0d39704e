package scoring

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"companyscore/internal/test/wait"
)

// referenceCase is a case of testdata/reference.mjs.
type referenceCase struct {
	Domain        string                 `json:"domain"`
	Now           int64                  `json:"now"`
	Industries    []string               `json:"industries"`
	SIC           int                    `json:"sic"`
	Site          map[string]string      `json:"site"`
	Country       string                 `json:"country"`
	HiringRegions int                    `json:"hiringRegions"`
	Observations  []referenceObservation `json:"observations"`
	Warnings      []referenceWarning     `json:"warnings"`
	Answered      []string               `json:"answered"`
	Trust         []string               `json:"trust"`
	Previous      *referencePrevious     `json:"previous"`
	Reference     *referenceBase         `json:"reference"`
	Spreads       *referenceSpreads      `json:"spreads"`
}

type referenceObservation struct {
	Signal string  `json:"signal"`
	State  State   `json:"state"`
	Raw    string  `json:"raw"`
	Source string  `json:"source"`
	Origin string  `json:"origin"`
	At     int64   `json:"at"` // 0 for the instant of the run
	Reason Reason  `json:"reason"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

type referenceWarning struct {
	Source string `json:"source"`
	Code   string `json:"code"`
	At     int64  `json:"at"`
}

type referenceSignal struct {
	ID         string  `json:"id"`
	State      State   `json:"state"`
	Raw        float64 `json:"raw"`
	Source     string  `json:"source"`
	Origin     string  `json:"origin"`
	ObservedAt int64   `json:"observedAt"`
}

type referencePrevious struct {
	ScoredAt int64              `json:"scoredAt"`
	Country  string             `json:"country"`
	Sector   string             `json:"sector"`
	Reach    string             `json:"reach"`
	Signals  []referenceSignal  `json:"signals"`
	Warnings []referenceWarning `json:"warnings"`
}

type referenceBase struct {
	ScoredAt int64   `json:"scoredAt"`
	Base     float64 `json:"base"`
}

type referenceSpread struct {
	Signals [SignalCount][3]float64 `json:"signals"`
	Premium [3]float64              `json:"premium"`
}

type referenceSpreads struct {
	All     referenceSpread            `json:"all"`
	Cohorts map[string]referenceSpread `json:"cohorts"` // by sector, reach and profile
}

// referenceRecord is a result of testdata/reference.mjs.
type referenceRecord struct {
	Base, Composite, Premium, Completeness, MomentumIndex, Low, High, Expected float64

	Profile                              Profile
	Sector, Country, Reach, Rating, Band string
	Buckets, BucketCompleteness          [4]float64
	Signals                              []struct {
		State      State
		Raw, Score float64
		Source     string
		Stale      bool
	}
	Warnings []string
}

// TestReferenceAgrees compares the package with an implementation that was written from
// docs/score.md alone.
func TestReferenceAgrees(t *testing.T) {
	t.Parallel()
	inputs := make([]Input, 0, len(examples)+2*rounds)
	for _, e := range examples {
		in := exampleInput(t, e)
		in.Now = in.Now.Truncate(time.Millisecond)
		inputs = append(inputs, in)
	}
	var records []Record
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 15))
		first := randomInput(r)
		first.Now = exampleNow.Truncate(time.Millisecond)
		next := randomInput(r)
		next.Domain, next.Now = first.Domain, first.Now.Add(time.Duration(r.IntN(500*24))*time.Hour)
		for _, in := range []*Input{&first, &next} {
			in.Answered = slices.DeleteFunc(slices.Clone(allSources), func(string) bool { return r.IntN(3) == 0 })
			in.Trust = pick(r, [][]string{nil, {"crm"}, {"wikidata", "filings"}})
			in.Identity.SIC = pick(r, []int{0, 0, 3711, 6022, 7372})
			in.Identity.Site = pick(r, []SiteText{{}, {Title: "Bank & insurance", Links: "Shop"}, {Description: "A CLOUD platform"}})
			if in.Reference != nil {
				in.Reference.ScoredAt = in.Reference.ScoredAt.Truncate(time.Millisecond)
				if !finite(in.Reference.Base) {
					in.Reference.Base = 60
				}
			}
		}
		record := mustScore(t, first)
		records = append(records, record)
		next.Previous = &record
		inputs = append(inputs, first, next)
	}
	spreads := NewSpreads(records)
	for i := range inputs {
		if i%3 == 0 {
			inputs[i].Spreads = spreads
		}
	}
	cases := make([]referenceCase, len(inputs))
	for i, in := range inputs {
		cases[i] = caseOf(in)
	}
	for i, want := range runReference(t, cases) {
		compareWithReference(t, mustScore(t, inputs[i]), want)
		if t.Failed() {
			t.Fatalf("case %d", i)
		}
	}
}

func runReference(t *testing.T, cases []referenceCase) []referenceRecord {
	t.Helper()
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "testdata/reference.mjs", scorePage)
	var out, errors bytes.Buffer
	node.Stdin, node.Stdout, node.Stderr = bytes.NewReader(input), &out, &errors
	if err := node.Run(); err != nil {
		t.Fatalf("%v: %s", err, errors.String())
	}
	var results []referenceRecord
	if err := json.Unmarshal(out.Bytes(), &results); err != nil || len(results) != len(cases) {
		t.Fatalf("%d results of %d cases, %v", len(results), len(cases), err)
	}
	return results
}

func compareWithReference(t *testing.T, got Record, want referenceRecord) {
	t.Helper()
	number := func(what string, got, want float64) {
		t.Helper()
		if !near(got, want, 1e-9) {
			t.Errorf("%s is %v, by the reference %v", what, got, want)
		}
	}
	number("base", got.Base, want.Base)
	number("composite", got.Composite, want.Composite)
	number("premium", got.ScalePremium, want.Premium)
	number("completeness", got.CompletenessPct, want.Completeness)
	number("momentum index", got.MomentumIndex, want.MomentumIndex)
	number("low end", got.Interval.Low, want.Low)
	number("high end", got.Interval.High, want.High)
	number("expected composite", got.ExpectedComposite, want.Expected)
	for i, b := range Buckets() {
		number(string(b), got.Buckets.Get(b), want.Buckets[i])
		number(string(b)+" completeness", got.BucketCompleteness.Get(b), want.BucketCompleteness[i])
	}
	for _, label := range [][2]string{
		{string(got.Profile), string(want.Profile)}, {got.Sector, want.Sector}, {got.Country, want.Country}, {got.GeoScope, want.Reach},
		{string(got.Rating), want.Rating}, {string(got.Confidence), want.Band},
	} {
		if label[0] != label[1] {
			t.Errorf("%q, by the reference %q", label[0], label[1])
		}
	}
	for i, s := range got.Signals {
		w := want.Signals[i]
		if s.State != w.State || s.Source != w.Source && s.State != StateMissing || s.Old(got.ScoredAt) != w.Stale ||
			!near(s.Score, w.Score, 1e-9) || s.Raw != w.Raw {
			t.Errorf("%+v, by the reference %+v", s, w)
		}
	}
	var warnings []string
	for _, w := range got.Warnings {
		if text := w.Source + " " + w.Code; !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	}
	slices.Sort(warnings)
	if !slices.Equal(warnings, want.Warnings) {
		t.Errorf("warnings %q, by the reference %q", warnings, want.Warnings)
	}
}

func caseOf(in Input) referenceCase {
	c := referenceCase{
		Domain: in.Domain, Now: in.Now.UnixMilli(), Industries: append([]string{}, in.Identity.Industries...), SIC: in.Identity.SIC,
		Country:       in.Identity.Country,
		HiringRegions: in.Identity.HiringRegions, Warnings: warningsOf(in.Warnings), Answered: append([]string{}, in.Answered...),
		Trust: append([]string{}, in.Trust...),
		Site: map[string]string{
			"title": in.Identity.Site.Title, "description": in.Identity.Site.Description, "headings": in.Identity.Site.Headings,
			"structured": in.Identity.Site.Structured, "links": in.Identity.Site.Links,
		},
		Observations: []referenceObservation{},
	}
	for _, o := range in.Observations {
		at := int64(0)
		if !o.At.IsZero() {
			at = o.At.UnixMilli()
		}
		c.Observations = append(c.Observations, referenceObservation{
			Signal: o.Signal, State: o.State, Raw: strconv.FormatFloat(o.Raw, 'g', -1, 64), Source: o.Source, Origin: o.Origin, At: at,
			Reason: o.Reason, Low: limit(o.Low), High: limit(o.High),
		})
	}
	if p := in.Previous; p != nil {
		c.Previous = &referencePrevious{ScoredAt: p.ScoredAt.UnixMilli(), Country: p.Country, Sector: p.Sector, Reach: p.GeoScope,
			Warnings: warningsOf(p.Warnings)}
		for _, s := range p.Signals {
			c.Previous.Signals = append(c.Previous.Signals,
				referenceSignal{s.ID, s.State, s.Raw, s.Source, s.Origin, s.ObservedAt.UnixMilli()})
		}
	}
	if in.Reference != nil {
		c.Reference = &referenceBase{in.Reference.ScoredAt.UnixMilli(), in.Reference.Base}
	}
	if in.Spreads != nil {
		c.Spreads = &referenceSpreads{All: spreadOf(in.Spreads.All), Cohorts: make(map[string]referenceSpread)}
		for key, spread := range in.Spreads.Cohorts {
			c.Spreads.Cohorts[key.Sector+" "+key.GeoScope+" "+string(key.Profile)] = spreadOf(*spread)
		}
	}
	return c
}

// limit returns the nearest number that JSON has, 0 for NaN.
func limit(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return clamp(x, -math.MaxFloat64, math.MaxFloat64)
}

func warningsOf(all []Warning) []referenceWarning {
	out := []referenceWarning{}
	for _, w := range all {
		out = append(out, referenceWarning{w.Source, w.Code, w.At.UnixMilli()})
	}
	return out
}

func spreadOf(s Spread) (out referenceSpread) {
	for i, m := range s.Signals {
		out.Signals[i] = [3]float64{m.Count, m.Sum, m.Squares}
	}
	out.Premium = [3]float64{s.Premium.Count, s.Premium.Sum, s.Premium.Squares}
	return out
}
