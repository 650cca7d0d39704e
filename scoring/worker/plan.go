package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// sourceMax is the deadline of a source whose plan has none.
const sourceMax = 30 * time.Second

// plan is the order of the sources in every run. It is immutable.
type plan struct {
	steps []step
	// silent are missing observations for the signals of sources that are not part of the plan.
	silent []scoring.Observation
	// live is true if the plan has a source other than the facts.
	live bool
	// group is the only source if it is a GroupSource, else nil.
	group source.GroupSource
}

// step is one source of the plan.
type step struct {
	source   source.Source
	name     string
	after    []int // indices in steps of the sources that it waits for
	deadline time.Duration
}

// newPlan sorts the sources that are not off, so that none waits for a later one.
func newPlan(sources []source.Source) (*plan, error) {
	p := new(plan)
	waiting := slices.DeleteFunc(slices.Clone(sources), func(s source.Source) bool { return s.Plan().Off != "" })
	place := make(map[string]int)
	for len(waiting) > 0 {
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(s source.Source) bool {
			if slices.ContainsFunc(waiting, func(other source.Source) bool { return waitsFor(s, other.Name()) }) {
				return false
			}
			p.add(s, place)
			return true
		})
		if len(waiting) == before {
			var names []string
			for _, s := range waiting {
				names = append(names, s.Name())
			}
			return nil, fmt.Errorf("plan sources: %s wait for each other", strings.Join(names, ", "))
		}
	}
	if len(p.steps) == 1 {
		p.group, _ = p.steps[0].source.(source.GroupSource)
	}
	for _, signal := range scoring.Manifest() {
		for _, name := range signal.Sources {
			if _, asked := place[name]; !asked && name != historySource {
				p.silent = append(p.silent, scoring.Observation{
					Signal: signal.ID, State: scoring.StateMissing, Source: name, Reason: scoring.ReasonSourceDisabled,
				})
			}
		}
	}
	return p, nil
}

// historySource is the manifest's key of the service's own earlier runs.
const historySource = "history"

// waitsFor reports whether a source waits for another. A source that waits for any source also
// waits for the facts.
func waitsFor(s source.Source, other string) bool {
	after := s.Plan().After
	return s.Name() != other && (slices.Contains(after, other) || len(after) > 0 && other == scoring.FactsSource)
}

func (p *plan) add(s source.Source, place map[string]int) {
	st := step{source: s, name: s.Name(), deadline: s.Plan().Deadline}
	if st.deadline == 0 {
		st.deadline = sourceMax
	}
	for i, other := range p.steps {
		if waitsFor(s, other.name) {
			st.after = append(st.after, i)
		}
	}
	place[st.name] = len(p.steps)
	p.steps = append(p.steps, st)
	p.live = p.live || st.name != scoring.FactsSource
}
