package source

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"companyscore/scoring"
)

// Part is one source's share of a signal that needs several sources.
type Part struct {
	Signal string
	Source string
	// Value is the number of the source: points for a sum, or a size of which the largest counts.
	Value float64
	// Names are names to count once over all sources. Case and spacing are ignored.
	Names []string
	// Missing is why the source has no share, although it did not fail.
	Missing scoring.Reason
}

// combination defines a signal as a function of the parts of several sources. All are needed.
type combination struct {
	signal string
	needs  []string
	value  func(parts []Part) float64
}

// leadersMax is the largest counted number of leaders.
const leadersMax = 6

var combinations = []combination{
	{"security_program", []string{"web", "dns"}, sum},
	{"commercial_infrastructure", []string{"dns", "tls"}, sum},
	{"leadership_disclosure", []string{"wikidata", "web"}, distinct(leadersMax)},
	{"corporate_group_size", []string{"wikidata", "gleif"}, largest},
}

// Combine derives the signals that need several sources, after all have ended. It returns nothing
// for a signal if one of its sources gave no part: a failed source has reported that itself,
// through Unanswered. observations are those of all sources; hiringIntensity reads headcount and
// roles there, chosen by prefer.
func Combine(parts []Part, observations []scoring.Observation, prefer scoring.Preference) []scoring.Observation {
	var out []scoring.Observation
	for _, c := range combinations {
		if o, ok := c.observe(parts); ok {
			out = append(out, o)
		}
	}
	return append(out, hiringIntensity(observations, prefer)...)
}

// observe returns false if a needed source gave no part.
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

// hiringIntensity returns open roles in percent of the headcount. Without roles it is 0, even if
// the headcount is unknown.
func hiringIntensity(observations []scoring.Observation, prefer scoring.Preference) []scoring.Observation {
	roles, asked := prefer.Choose("open_roles", observations)
	if !asked {
		return nil
	}
	o := scoring.Observation{Signal: "hiring_intensity_pct", State: scoring.StateOK, Source: roles.Source}
	employees, _ := prefer.Choose("employee_count", observations)
	switch {
	case roles.State == scoring.StateMissing:
		o.State, o.Reason = scoring.StateMissing, roles.Reason
	case roles.Raw == 0: // also for an absence
	case employees.State == scoring.StateOK && employees.Raw > 0:
		o.Raw, o.Source = 100*roles.Raw/employees.Raw, roles.Source+"|"+employees.Source
	default:
		o.State, o.Source, o.Reason = scoring.StateMissing, employees.Source, cmp.Or(employees.Reason, scoring.ReasonNotFound)
	}
	return []scoring.Observation{o}
}
