package bench

import (
	"context"

	"companyscore/bench/report"
)

const (
	findSteps = 16   // maximum number of steps
	findExact = 1.05 // the search ends below this ratio of missed and met rate
)

// findMax doubles the rate until an SLO is missed, then bisects. It repeats a rate once if
// conditions drifted. It returns the report of the highest rate that met the SLO, or of the
// lowest rate if none did.
func (r *runner) findMax(ctx context.Context) (*report.Run, error) {
	search := &report.FindMax{Limit: "steps"}
	var best, lowest *report.Run
	kept, missed := 0.0, 0.0
	rate, again := r.cfg.Rate, false
	for len(search.Steps) < findSteps {
		run, err := r.once(ctx, rate)
		if err != nil {
			return nil, err
		}
		step := report.Step{Rate: rate, Achieved: run.Load.Achieved, Status: run.Verdict.Status, Met: run.Met() &&
			run.Verdict.Status == report.Valid}
		if class := run.ClassNamed(run.Headline[0]); class != nil {
			step.P99 = class.Latency.P99
		}
		search.Steps = append(search.Steps, step)
		if lowest == nil || rate < lowest.Settings.Rate {
			lowest = run
		}
		if step.Status == report.ConditionsDrifted && run.Met() && !again {
			again = true
			continue
		}
		again = false
		if step.Met {
			kept, best = rate, run
		} else {
			missed = rate
			search.Limit = "slo"
			if step.Status == report.GeneratorSaturated {
				search.Limit = "generator"
			}
		}
		switch {
		case missed == 0:
			rate = 2 * kept
		case kept == 0:
			rate = missed / 2
		default:
			rate = (kept + missed) / 2
		}
		if kept > 0 && missed > 0 && missed/kept <= findExact || rate < 1 {
			break
		}
	}
	search.Best = kept
	if best == nil {
		best = lowest
	}
	best.FindMax = search
	return best, nil
}
