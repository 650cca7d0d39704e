package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"companyscore/bench/load"
	"companyscore/bench/report"
)

// SLO is a promise about a percentile of the latency of a class.
type SLO struct {
	Class      string  // name of the class; empty for those the scenario is about
	Percentile float64 // above 0, below 100, or 100 for the slowest
	Limit      time.Duration
}

// ParseSLO reads a promise such as p99<2ms, p99.9<10ms, max<1s or "score redis:p99<5ms".
func ParseSLO(text string) (SLO, error) {
	wrong := func(what string) (SLO, error) {
		return SLO{}, fmt.Errorf("slo %q: %s: write for instance p99<2ms, max<1s or \"score redis:p99<5ms\"", text, what)
	}
	class, rest, found := strings.Cut(text, ":")
	if !found {
		class, rest = "", text
	} else if class = strings.TrimSpace(class); class == "" {
		return wrong("there is no class before the colon")
	}
	measure, bound, found := strings.Cut(rest, "<")
	if !found {
		return wrong(`there is no "<"`)
	}
	slo := SLO{Class: class, Percentile: 100}
	if measure = strings.TrimSpace(measure); measure != "max" {
		number, ok := strings.CutPrefix(measure, "p")
		p, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || !(p > 0 && p < 100) {
			return wrong("the measure is neither max nor a percentile between p0 and p100")
		}
		slo.Percentile = p
	}
	limit, err := time.ParseDuration(strings.TrimSpace(bound))
	if err != nil || limit <= 0 {
		return wrong("the limit is no duration above zero")
	}
	slo.Limit = limit
	return slo, nil
}

func (s SLO) String() string {
	if s.Percentile == 100 {
		return "max<" + s.Limit.String()
	}
	return "p" + strconv.FormatFloat(s.Percentile, 'f', -1, 64) + "<" + s.Limit.String()
}

// hold compares promises with what was measured. A promise without a class is held
// against the first class of the scenario that had answers, and is missed when more
// than the allowed share of requests failed or was answered in an unexpected way.
func hold(slos []SLO, headline []load.Key, result *load.Result, unexpected, errorsMax float64) []report.SLO {
	held := make([]report.SLO, 0, len(slos))
	for _, slo := range slos {
		class := find(result, slo.Class, headline)
		out := report.SLO{Text: slo.String(), Class: slo.Class, Limit: float64(slo.Limit.Nanoseconds()) / 1000}
		if class == nil {
			if out.Class == "" {
				out.Class = headline[0].String()
			}
			out.Why = "there was no such answer"
			held = append(held, out)
			continue
		}
		out.Class = class.Key.String()
		measured := class.Latency.ValueAtPercentile(slo.Percentile)
		out.Measured = float64(measured) / 1000
		out.Met = time.Duration(measured) < slo.Limit
		if unexpected > errorsMax {
			out.Met = false
			out.Why = fmt.Sprintf("%s of the requests failed or were answered in an unexpected way", report.Percent(unexpected))
		}
		held = append(held, out)
	}
	return held
}

func find(result *load.Result, name string, headline []load.Key) *load.Class {
	for i := range result.Classes {
		if result.Classes[i].Key.String() == name {
			return &result.Classes[i]
		}
	}
	if name != "" {
		return nil
	}
	for _, key := range headline {
		if class := find(result, key.String(), nil); class != nil {
			return class
		}
	}
	return nil
}

// tightest is the smallest limit, 0 for none.
func tightest(slos []SLO) time.Duration {
	limit := time.Duration(0)
	for _, slo := range slos {
		if limit == 0 || slo.Limit < limit {
			limit = slo.Limit
		}
	}
	return limit
}
