package source_test

import (
	"testing"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

func TestCombine(t *testing.T) {
	t.Parallel()
	seen := func(signal, from string, raw float64) scoring.Observation {
		return scoring.Observation{Signal: signal, State: scoring.StateOK, Source: from, Raw: raw}
	}
	none := func(signal, from string) scoring.Observation {
		return scoring.Observation{Signal: signal, State: scoring.StateAbsent, Source: from}
	}
	tests := []struct {
		name   string
		signal string
		parts  []source.Part
		all    []scoring.Observation
		failed []string // sources that failed with a timeout
		want   scoring.Observation
	}{
		{
			name: "points of two sources are added up", signal: "security_program",
			parts: []source.Part{{Signal: "security_program", Source: "web", Value: 2}, {Signal: "security_program", Source: "dns",
				Value: 1}},
			want: seen("security_program", "web|dns", 3),
		},
		{
			name: "no point anywhere is an absence", signal: "commercial_infrastructure",
			parts: []source.Part{{Signal: "commercial_infrastructure", Source: "tls"}, {Signal: "commercial_infrastructure",
				Source: "dns"}},
			want: none("commercial_infrastructure", "dns|tls"),
		},
		{
			name: "the points of one are not believed when the other failed", signal: "security_program",
			parts: []source.Part{{Signal: "security_program", Source: "web", Value: 3}}, failed: []string{"dns"},
			want: scoring.Observation{Signal: "security_program", State: scoring.StateMissing, Source: "dns",
				Reason: scoring.ReasonSourceTimeout},
		},
		{
			name: "a source that cannot tell says why", signal: "security_program",
			parts: []source.Part{
				{Signal: "security_program", Source: "web", Missing: scoring.ReasonNotApplicable},
				{Signal: "security_program", Source: "dns", Value: 1},
			},
			want: scoring.Observation{Signal: "security_program", State: scoring.StateMissing, Source: "web",
				Reason: scoring.ReasonNotApplicable},
		},
		{
			name: "who is named twice counts once", signal: "leadership_disclosure",
			parts: []source.Part{
				{Signal: "leadership_disclosure", Source: "wikidata", Names: []string{"Ada Quill", "Bo Tarn"}},
				{Signal: "leadership_disclosure", Source: "web", Names: []string{" ada  quill", "Cy Orrin", ""}},
			},
			want: seen("leadership_disclosure", "wikidata|web", 3),
		},
		{
			name: "no more than six leaders count", signal: "leadership_disclosure",
			parts: []source.Part{
				{Signal: "leadership_disclosure", Source: "wikidata", Names: []string{"a", "b", "c", "d", "e", "f", "g"}},
				{Signal: "leadership_disclosure", Source: "web"},
			},
			want: seen("leadership_disclosure", "wikidata|web", 6),
		},
		{
			name: "the larger group counts", signal: "corporate_group_size",
			parts: []source.Part{{Signal: "corporate_group_size", Source: "gleif", Value: 9},
				{Signal: "corporate_group_size", Source: "wikidata", Value: 4}},
			want: seen("corporate_group_size", "wikidata|gleif", 9),
		},
		{
			name: "imported facts win over a combination", signal: "corporate_group_size",
			parts: []source.Part{{Signal: "corporate_group_size", Source: "gleif", Value: 9},
				{Signal: "corporate_group_size", Source: "wikidata", Value: 4}},
			all:  []scoring.Observation{seen("corporate_group_size", "facts", 2)},
			want: seen("corporate_group_size", "facts", 2),
		},
		{
			name: "roles in percent of the headcount", signal: "hiring_intensity_pct",
			all: []scoring.Observation{seen("open_roles", "jobs", 26), seen("employee_count", "web", 200),
				seen("employee_count", "wikidata", 130)},
			want: seen("hiring_intensity_pct", "jobs|wikidata", 20),
		},
		{
			name: "no roles need no headcount", signal: "hiring_intensity_pct",
			all: []scoring.Observation{none("open_roles", "jobs")}, failed: []string{"wikidata"},
			want: seen("hiring_intensity_pct", "jobs", 0),
		},
		{
			name: "roles without a headcount", signal: "hiring_intensity_pct",
			all: []scoring.Observation{
				seen("open_roles", "jobs", 3), {Signal: "employee_count", State: scoring.StateMissing, Source: "wikidata",
					Reason: scoring.ReasonNotFound},
			},
			want: scoring.Observation{Signal: "hiring_intensity_pct", State: scoring.StateMissing, Source: "wikidata",
				Reason: scoring.ReasonNotFound},
		},
		{
			name: "unknown roles", signal: "hiring_intensity_pct",
			all: []scoring.Observation{seen("employee_count", "wikidata", 3)}, failed: []string{"jobs"},
			want: scoring.Observation{Signal: "hiring_intensity_pct", State: scoring.StateMissing, Source: "jobs",
				Reason: scoring.ReasonSourceTimeout},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			all := test.all
			for _, name := range test.failed {
				all = append(all, source.Unanswered(name, "timeout")...)
			}
			prefer := scoring.Preference{Now: now}
			all = append(all, source.Combine(test.parts, all, prefer)...)
			got, ok := prefer.Choose(test.signal, all)
			if !ok || got != test.want {
				t.Errorf("got %+v %t\nwant %+v", got, ok, test.want)
			}
		})
	}
}
