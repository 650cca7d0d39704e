package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"companyscore/bench/load"
	"companyscore/bench/report"
)

// SLO is a limit of a latency percentile of a class.
type SLO struct {
	Class      string  // name of the class; empty for the headline classes
	Percentile float64 // above 0 and below 100, or 100 for the maximum
	Limit      time.Duration
}

// ParseSLO parses a limit such as p99<2ms, p99.9<10ms, max<1s or "score redis:p99<5ms".
func ParseSLO(text string) (SLO, error) {
	wrong := func(what string) (SLO, error) {
		return SLO{}, fmt.Errorf("slo %q: %s: use a form such as p99<2ms, max<1s or \"score redis:p99<5ms\"", text, what)
	}
	class, rest, found := strings.Cut(text, ":")
	if !found {
		class, rest = "", text
	} else if class = strings.TrimSpace(class); class == "" {
		return wrong("no class before the colon")
	}
	measure, bound, found := strings.Cut(rest, "<")
	if !found {
		return wrong(`no "<"`)
	}
	slo := SLO{Class: class, Percentile: 100}
	if measure = strings.TrimSpace(measure); measure != "max" {
		number, ok := strings.CutPrefix(measure, "p")
		p, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || !(p > 0 && p < 100) {
			return wrong("neither max nor a percentile between p0 and p100")
		}
		slo.Percentile = p
	}
	limit, err := time.ParseDuration(strings.TrimSpace(bound))
	if err != nil || limit <= 0 {
		return wrong("the limit is not a positive duration")
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

// checkSLOs compares SLOs with the result. An SLO without a class applies to the first
// headline class with answers. An SLO is missed if the share of unexpected outcomes exceeds
// errorsMax.
func checkSLOs(slos []SLO, headline []load.Key, result *load.Result, unexpected, errorsMax float64) []report.SLO {
	checked := make([]report.SLO, 0, len(slos))
	for _, slo := range slos {
		class := find(result, slo.Class, headline)
		out := report.SLO{Text: slo.String(), Class: slo.Class, Limit: float64(slo.Limit.Nanoseconds()) / 1000}
		if class == nil {
			if out.Class == "" {
				out.Class = headline[0].String()
			}
			out.Why = "no answer of this class"
			checked = append(checked, out)
			continue
		}
		out.Class = class.Key.String()
		measured := class.Latency.ValueAtPercentile(slo.Percentile)
		out.Measured = float64(measured) / 1000
		out.Met = time.Duration(measured) < slo.Limit
		if unexpected > errorsMax {
			out.Met = false
			out.Why = fmt.Sprintf("%s of the requests failed or had an unexpected answer", report.Percent(unexpected))
		}
		checked = append(checked, out)
	}
	return checked
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

// tightest returns the smallest limit, 0 without SLOs.
func tightest(slos []SLO) time.Duration {
	limit := time.Duration(0)
	for _, slo := range slos {
		if limit == 0 || slo.Limit < limit {
			limit = slo.Limit
		}
	}
	return limit
}
