package roster

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Refusal says that statements of an analyst ended the engine, so that his statements are refused.
type Refusal struct {
	Name      string    `json:"name"`
	Ends      int       `json:"ends"`  // how often, since an operator allowed the analyst or since refusalMemory
	Alone     int       `json:"alone"` // how often of these no other analyst's statement ran
	At        time.Time `json:"at"`    // of the last time
	Reason    string    `json:"reason"`
	Statement string    `json:"statement"` // the beginning of one that ran then
}

const (
	refusalTime   = 5 * time.Minute    // of the first and second refusal
	refusalMemory = 7 * 24 * time.Hour // after which an end no longer counts
	refusalsMax   = 3                  // ends after which only an operator ends the refusal
	statementMax  = 200                // bytes of Refusal.Statement
)

// InForce reports whether statements are refused at an instant, and until when; a zero time means until an operator allows the analyst.
func (r Refusal) InForce(now time.Time) (until time.Time, refused bool) {
	if r.Ends >= refusalsMax {
		return time.Time{}, true
	}
	until = r.At.Add(refusalTime)
	return until, now.Before(until)
}

// RefusalsPath returns the file of the refusals of an engine with a data directory.
func RefusalsPath(engine string) string { return filepath.Join(engine, "refused-analysts.json") }

// ReadRefusals returns the refusals in a file. A missing file has none.
func ReadRefusals(path string) ([]Refusal, error) { return read[Refusal](path) }

// Blame writes that the engine ended while statements ran, by name of the analyst. If several analysts ran some, and some of
// them ended it alone before, those are blamed who did so most often; otherwise all are. It returns the names that it blamed.
func Blame(path string, statements map[string]string, reason string, now time.Time) (blamed []string, err error) {
	err = change(path, func(all []Refusal) ([]Refusal, error) {
		all = slices.DeleteFunc(all, func(r Refusal) bool { return r.Ends < refusalsMax && now.Sub(r.At) > refusalMemory })
		most, before := 0, map[string]Refusal{}
		for _, r := range all {
			before[r.Name] = r
			if _, ran := statements[r.Name]; ran {
				most = max(most, r.Alone)
			}
		}
		blamed = nil
		for name, statement := range statements {
			r := before[name]
			if r.Alone < most {
				continue
			}
			if len(statements) == 1 {
				r.Alone++
			}
			blamed = append(blamed, name)
			all = slices.DeleteFunc(all, func(r Refusal) bool { return r.Name == name })
			all = append(all, Refusal{Name: name, Ends: r.Ends + 1, Alone: r.Alone, At: now.UTC().Truncate(time.Second), Reason: reason,
				Statement: statement[:min(len(statement), statementMax)]})
		}
		return all, nil
	})
	if err != nil {
		return nil, fmt.Errorf("refuse analysts: %w", err)
	}
	slices.Sort(blamed)
	return blamed, nil
}

// Allow ends the refusal of an analyst. It returns ErrNotRefused if there is none.
func Allow(path, name string) error {
	return change(path, func(all []Refusal) ([]Refusal, error) {
		rest := slices.DeleteFunc(slices.Clone(all), func(r Refusal) bool { return r.Name == name })
		if len(rest) == len(all) {
			return nil, ErrNotRefused
		}
		return rest, nil
	})
}
