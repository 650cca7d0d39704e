package source

import (
	"slices"

	"companyscore/scoring"
)

// says collects what one source says. The zero value with a name is ready to use.
type says struct {
	source string
	result Result
}

// ok says that a signal has the value raw.
func (s *says) ok(signal string, raw float64) {
	s.result.Observations = append(s.result.Observations, scoring.Observation{
		Signal: signal, State: scoring.StateOK, Raw: raw, Source: s.source,
	})
}

// absent says that there is none of what the signals measure.
func (s *says) absent(signals ...string) {
	for _, signal := range signals {
		s.result.Observations = append(s.result.Observations, scoring.Observation{
			Signal: signal, State: scoring.StateAbsent, Source: s.source,
		})
	}
}

// missing says why the source cannot tell.
func (s *says) missing(reason scoring.Reason, signals ...string) {
	for _, signal := range signals {
		s.result.Observations = append(s.result.Observations, scoring.Observation{
			Signal: signal, State: scoring.StateMissing, Source: s.source, Reason: reason,
		})
	}
}

// count says ok for a number that is not zero, and absent for none.
func (s *says) count(signal string, n int) {
	if n == 0 {
		s.absent(signal)
		return
	}
	s.ok(signal, float64(n))
}

// part adds the source's share of a combined signal.
func (s *says) part(signal string, value float64, names ...string) {
	s.result.Parts = append(s.result.Parts, Part{Signal: signal, Source: s.source, Value: value, Names: names})
}

// noPart says why the source has no share of a combined signal to give.
func (s *says) noPart(reason scoring.Reason, signals ...string) {
	for _, signal := range signals {
		s.result.Parts = append(s.result.Parts, Part{Signal: signal, Source: s.source, Missing: reason})
	}
}

// of returns the reason a warning code stands for.
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

// Unanswered says of every signal that a failed source could have known why it
// is missing.
func Unanswered(name, code string) []scoring.Observation {
	s := says{source: name}
	for _, signal := range scoring.Manifest() {
		if slices.Contains(signal.Sources, name) {
			s.missing(reasonOf(code), signal.ID)
		}
	}
	return s.result.Observations
}

// claim says who the company is, once. An empty value says nothing.
func (s *says) claim(kind Kind, via, value, evidence string) {
	same := func(c Claim) bool { return c.Kind == kind && c.Via == via && c.Value == value }
	if value != "" && !slices.ContainsFunc(s.result.Claims, same) {
		s.result.Claims = append(s.result.Claims, Claim{Kind: kind, Value: value, Source: s.source, Via: via, Evidence: evidence})
	}
}
