package source_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"companyscore/internal/test/fakenet"
	"companyscore/internal/test/golden"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
)

const sourcesPage = "../../docs/sources.md"

// TestSourcesPageIsUpToDate compares the tables of docs/sources.md with the program. -update
// writes them.
func TestSourcesPageIsUpToDate(t *testing.T) {
	t.Parallel()
	live := source.Live(fakenet.New(t).Client(), "", slog.New(slog.DiscardHandler))
	golden.CompareTables(t, sourcesPage, map[string]string{
		"order": orderTable(live), "policies": policyTable(), "limits": limitTable(), "signals": signalTable(t),
		"coverage": coverageTable(), "trust": trustTable(), "terms": termTable(),
	})
}

// orderTable has the sources that each source waits for.
func orderTable(live []source.Source) string {
	b := golden.NewTable("source", "waits for")
	for _, p := range fetch.Policies {
		i := slices.IndexFunc(live, func(s source.Source) bool { return s.Name() == p.Source })
		waits := "nobody"
		if after := live[i].Plan().After; len(after) > 0 {
			waits = strings.Join(after, ", ")
		}
		b.Row("`"+p.Source+"`", waits)
	}
	return b.String()
}

func policyTable() string {
	b := golden.NewTable("source", "in a run", "connect", "request", "retries", "kept", "answer at most", "left alone after failures")
	for _, p := range fetch.Policies {
		kept := "no"
		if p.TTL > 0 {
			kept = fetch.Short(p.TTL)
		}
		alone := fetch.Short(p.BreakFor)
		if p.BreakOnRefusal {
			alone += ", also after one refusal"
		}
		b.Row("`"+p.Source+"`", fetch.Short(p.Deadline), fetch.Short(p.Connect), fetch.Short(p.Total), fmt.Sprint(p.Retries), kept,
			fetch.Size(p.BodyMax), alone)
	}
	return b.String()
}

// termTable has what providers ask of callers.
func termTable() string {
	b := golden.NewTable("source", "asks of callers", "kept by")
	for _, term := range fetch.Terms {
		b.Row("`"+term.Source+"`", term.Asks, term.Kept)
	}
	return b.String()
}

func limitTable() string {
	b := golden.NewTable("servers", "limit")
	for _, q := range fetch.Quotas {
		var servers []string
		for _, e := range fetch.Endpoints {
			switch q.Name {
			case e.Quota:
				servers = append(servers, strings.TrimPrefix(e.Base, "https://"))
			case e.TokenQuota:
				servers = append(servers, strings.TrimPrefix(e.Base, "https://")+" with `"+e.Token+"`")
			}
		}
		if len(servers) == 0 {
			servers = []string{"whatever hosts `" + q.Name + "` asks"}
		}
		b.Row(strings.Join(servers, ", "), strings.TrimPrefix(q.String(), q.Name+": "))
	}
	return b.String()
}

// signalTable has the live sources of each signal in the order of trust; + joins those that are
// needed together.
func signalTable(t *testing.T) string {
	b := golden.NewTable("signal", "share of the base", "sources", "none counts as data")
	needs := source.NeededTogether()
	for _, s := range scoring.Manifest() {
		var live []string
		for _, name := range s.Sources {
			if slices.ContainsFunc(fetch.Policies, func(p fetch.Policy) bool { return p.Source == name }) {
				live = append(live, name)
			}
		}
		separator := ", "
		if together := needs[s.ID]; len(together) > 0 {
			if len(together) != len(live) {
				t.Errorf("%s needs %v of %v: the table has no form for that", s.ID, together, live)
			}
			separator = " + "
		}
		absent := "no"
		if _, counts := s.Curve.Absent(); counts {
			absent = "yes"
		}
		b.Row("`"+s.ID+"`", fmt.Sprintf("%.2f %%", 100*s.Weight*s.Bucket.Weight()), strings.Join(live, separator), absent)
	}
	return b.String()
}

// coverageTable has the share of the base that each source can give, and the loss without it.
func coverageTable() string {
	b := golden.NewTable("source", "signals it speaks about", "share of the base it can tell alone", "share of the base lost without it")
	needs := source.NeededTogether()
	for _, p := range fetch.Policies {
		var count int
		var alone, lost float64
		for _, s := range scoring.Manifest() {
			if !slices.Contains(s.Sources, p.Source) {
				continue
			}
			count++
			share := 100 * s.Weight * s.Bucket.Weight()
			together := slices.Contains(needs[s.ID], p.Source)
			if !together {
				alone += share
			}
			others := slices.DeleteFunc(slices.Clone(s.Sources), func(name string) bool { return name == p.Source || name == "history" })
			if together || len(others) == 0 {
				lost += share
			}
		}
		b.Row("`"+p.Source+"`", fmt.Sprint(count), fmt.Sprintf("%.1f %%", alone), fmt.Sprintf("%.1f %%", lost))
	}
	return b.String()
}

func trustTable() string {
	b := golden.NewTable("what", "most trusted first")
	for _, kind := range []source.Kind{source.Name, source.Country, source.Industry, source.SIC, source.CIK, source.LEI, source.GitHub} {
		b.Row(string(kind), strings.Join(source.TrustOf(kind), ", "))
	}
	return b.String()
}
