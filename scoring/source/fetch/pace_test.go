package fetch

import (
	"math"
	"testing"
)

func TestRefreshPaceIsHalfOfTheSlowestSharedLimit(t *testing.T) {
	t.Parallel()
	github, certspotter := map[string]string{"COMPANYSCORE_GITHUB_TOKEN": "x"}, map[string]string{"COMPANYSCORE_CERTSPOTTER_TOKEN": "x"}
	for _, c := range []struct {
		name    string
		sources []string
		tokens  map[string]string
		at      *Overrides
		perHour float64
	}{
		{"facts alone", []string{"facts"}, nil, nil, 0},
		{"limits of each host and of each process", []string{"facts", "web", "tls", "dns", "jobs"}, nil, nil, 0},
		{"one a second", []string{"hn", "web"}, nil, nil, 1800},
		{"the slower of two", []string{"hn", "wikidata"}, nil, nil, 1800}, // wikimedia lets 100 a minute through, hn 60
		{"the slower of two, in another order", []string{"gdelt", "hn"}, nil, nil, 300},
		{"without a token", []string{"github"}, nil, nil, 30},
		{"with one", []string{"github"}, github, nil, 2500},
		{"two servers of a source", []string{"ct"}, nil, nil, 4},
		{"two servers, one with a token", []string{"ct"}, certspotter, nil, 180},
		{"a overrides", []string{"gdelt"}, nil, &Overrides{Scale: 10, Endpoints: map[string]string{"gdelt": "http://127.0.0.1:1"}}, 3000},
		{"a overrides without the server", []string{"gdelt"}, nil, &Overrides{}, 0},
	} {
		if got := RefreshPace(c.sources, c.tokens, c.at) * 3600; math.Abs(got-c.perHour) > 1e-6 {
			t.Errorf("%s: %g an hour, want %g", c.name, got, c.perHour)
		}
	}
}
