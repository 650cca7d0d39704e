package source

import (
	"slices"
	"time"

	"companyscore/scoring"
)

// builder collects the result of one source.
type builder struct {
	source string
	result Result
}

// ok adds the value raw of a signal, observed by this run.
func (s *builder) ok(signal string, raw float64) { s.okAt(signal, raw, time.Time{}) }

// okAt adds the value raw of a signal, valid for an instant; zero is that of the run.
func (s *builder) okAt(signal string, raw float64, at time.Time) {
	s.result.Observations = append(s.result.Observations, scoring.Observation{
		Signal: signal, State: scoring.StateOK, Raw: raw, Source: s.source, At: at,
	})
}

// absent adds that there is none of what each signal measures.
func (s *builder) absent(signals ...string) {
	for _, signal := range signals {
		s.result.Observations = append(s.result.Observations, scoring.Observation{
			Signal: signal, State: scoring.StateAbsent, Source: s.source,
		})
	}
}

// missing adds why the source has no value for signals.
func (s *builder) missing(reason scoring.Reason, signals ...string) {
	for _, signal := range signals {
		s.result.Observations = append(s.result.Observations, scoring.Observation{
			Signal: signal, State: scoring.StateMissing, Source: s.source, Reason: reason,
		})
	}
}

// count adds ok for n > 0, and absent for 0.
func (s *builder) count(signal string, n int) {
	if n == 0 {
		s.absent(signal)
		return
	}
	s.ok(signal, float64(n))
}

// part adds the source's share of a combined signal.
func (s *builder) part(signal string, value float64, names ...string) {
	s.result.Parts = append(s.result.Parts, Part{Signal: signal, Source: s.source, Value: value, Names: names})
}

// noPart adds why the source has no share of combined signals.
func (s *builder) noPart(reason scoring.Reason, signals ...string) {
	for _, signal := range signals {
		s.result.Parts = append(s.result.Parts, Part{Signal: signal, Source: s.source, Missing: reason})
	}
}

// reasonOf maps a warning code to the reason stored with a missing signal.
func reasonOf(code string) scoring.Reason {
	switch code {
	case "timeout":
		return scoring.ReasonSourceTimeout
	case "rate_limited":
		return scoring.ReasonSourceRateLimited
	case "blocked_by_robots":
		return scoring.ReasonBlockedByRobots
	}
	return scoring.ReasonSourceError
}

// Unanswered returns a missing observation for every signal of a source that failed.
func Unanswered(name, code string) []scoring.Observation {
	s := builder{source: name}
	for _, signal := range scoring.Manifest() {
		if slices.Contains(signal.Sources, name) {
			s.missing(reasonOf(code), signal.ID)
		}
	}
	return s.result.Observations
}

// claim adds a claim about the company unless it is empty or a duplicate.
func (s *builder) claim(kind Kind, via, value, evidence string) {
	same := func(c Claim) bool { return c.Kind == kind && c.Via == via && c.Value == value }
	if value != "" && !slices.ContainsFunc(s.result.Claims, same) {
		s.result.Claims = append(s.result.Claims, Claim{Kind: kind, Value: value, Source: s.source, Via: via, Evidence: evidence})
	}
}
