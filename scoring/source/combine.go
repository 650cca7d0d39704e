package source

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"companyscore/scoring"
)

// Part is what one source adds to a signal that no source can tell alone.
type Part struct {
	Signal string
	Source string
	// Value is the source's number: points to be added up, or a size of which the largest counts.
	Value float64
	// Names are things that count once, however many sources name them. Case and
	// spaces do not make two of one.
	Names []string
	// Missing is set when the source was read and cannot tell, and says why.
	Missing scoring.Reason
}

// combination says how a signal is made of the parts of several sources, all of
// which are needed.
type combination struct {
	signal string
	needs  []string
	value  func(parts []Part) float64
}

// leadersMax is the number of leaders beyond which more say nothing.
const leadersMax = 6

var combinations = []combination{
	{"security_program", []string{"web", "dns"}, sum},
	{"commercial_infrastructure", []string{"dns", "tls"}, sum},
	{"leadership_disclosure", []string{"wikidata", "web"}, distinct(leadersMax)},
	{"corporate_group_size", []string{"wikidata", "gleif"}, largest},
}

// Combine derives the signals that need several sources, after all have ended.
// It says nothing of a signal when one of its sources gave no part: a source that
// failed has said that itself, through Unanswered, and no value must hide it.
// Observations are those of all sources; Combine reads headcount and roles there.
func Combine(parts []Part, observations []scoring.Observation) []scoring.Observation {
	var out []scoring.Observation
	for _, c := range combinations {
		if o, ok := c.observe(parts); ok {
			out = append(out, o)
		}
	}
	return append(out, hiringIntensity(observations)...)
}

// observe is false when a needed source gave no part.
func (c combination) observe(parts []Part) (scoring.Observation, bool) {
	o := scoring.Observation{Signal: c.signal, State: scoring.StateOK, Source: strings.Join(c.needs, "|")}
	var found []Part
	for _, need := range c.needs {
		i := slices.IndexFunc(parts, func(p Part) bool { return p.Signal == c.signal && p.Source == need })
		if i < 0 {
			return o, false
		}
		if parts[i].Missing != "" {
			o.State, o.Source, o.Reason = scoring.StateMissing, need, parts[i].Missing
			return o, true
		}
		found = append(found, parts[i])
	}
	if o.Raw = c.value(found); o.Raw == 0 {
		o.State = scoring.StateAbsent
	}
	return o, true
}

func sum(parts []Part) (total float64) {
	for _, p := range parts {
		total += p.Value
	}
	return total
}

func largest(parts []Part) (most float64) {
	for _, p := range parts {
		most = math.Max(most, p.Value)
	}
	return most
}

func distinct(limit int) func([]Part) float64 {
	return func(parts []Part) float64 {
		seen := make(map[string]bool)
		for _, p := range parts {
			for _, name := range p.Names {
				if key := strings.ToLower(strings.Join(strings.Fields(name), " ")); key != "" {
					seen[key] = true
				}
			}
		}
		return float64(min(len(seen), limit))
	}
}

// hiringIntensity is open roles in percent of the headcount. Without roles it is
// 0, even if nobody knows the headcount or its source failed.
func hiringIntensity(observations []scoring.Observation) []scoring.Observation {
	roles, asked := scoring.Believed("open_roles", observations)
	if !asked {
		return nil
	}
	o := scoring.Observation{Signal: "hiring_intensity_pct", State: scoring.StateOK, Source: roles.Source}
	employees, _ := scoring.Believed("employee_count", observations)
	switch {
	case roles.State == scoring.StateMissing:
		o.State, o.Reason = scoring.StateMissing, roles.Reason
	case roles.Raw == 0: // so it is for an absence
	case employees.State == scoring.StateOK && employees.Raw > 0:
		o.Raw, o.Source = 100*roles.Raw/employees.Raw, roles.Source+"|"+employees.Source
	default:
		o.State, o.Source, o.Reason = scoring.StateMissing, employees.Source, cmp.Or(employees.Reason, scoring.ReasonNotFound)
	}
	return []scoring.Observation{o}
}
