package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"companyscore/scoring"
)

// evidencePart is the evidence in the text of a score.
var evidencePart = regexp.MustCompile(`,"evidence":\{[^{}]*\{[^{}]*\}\}`)

// evidence has the rules of evidence and intervals. It needs a score of apple.com.
func (s suite) evidence(starter customer) {
	const domain = "apple.com"
	s.rule("decided: evidence", "include=evidence adds the evidence to a score, and nothing else changes", func(t *testing.T) {
		for _, c := range []struct{ key, domain string }{{starter.live, domain}, {starter.live, first}, {starter.test, "acme.test"}} {
			plain, full := s.get(t, "/v1/score/"+c.domain, c.key).wants(t, 200, ""), s.get(t, "/v1/score/"+c.domain+"?include=evidence",
				c.key).wants(t, 200, "")
			if plain.at("evidence") != nil || full.at("evidence") == nil || evidencePart.ReplaceAllString(full.raw, "") != plain.raw {
				t.Errorf("plain %s\nwith evidence %s", plain.raw, full.raw)
			}
			if plain.header.Get("ETag") == full.header.Get("ETag") {
				t.Errorf("%s: both have the ETag %s", c.domain, plain.header.Get("ETag"))
			}
			again := s.get(t, "/v1/score/"+c.domain+"?include=evidence", c.key, "If-None-Match", full.header.Get("ETag"))
			again.wants(t, 304, "")
		}
	})
	s.rule("decided: evidence", "the evidence says what confidence says", func(t *testing.T) {
		for _, c := range []struct{ key, domain string }{{starter.live, domain}, {starter.live, first}, {starter.test, "cohort.test"}} {
			score, confidence := s.get(t, "/v1/score/"+c.domain+"?include=evidence", c.key), s.get(t, "/v1/company/"+c.domain+"/confidence",
				c.key).wants(t, 200, "")
			for _, field := range []string{"pipeline_version", "band", "data_completeness_pct", "interval"} {
				got, want := fmt.Sprint(score.at("evidence."+field)), fmt.Sprint(confidence.at(field))
				if field == "band" && score.number("evidence.data_completeness_pct") == 0 {
					want = string(scoring.BandNone) // in the evidence only
				}
				if got != want {
					t.Errorf("%s: %s is %s, confidence has %s", c.domain, field, got, want)
				}
			}
			if score.text("evidence.run_id") == "" {
				t.Errorf("%s: no run in %s", c.domain, score.raw)
			}
		}
	})
	s.rule("decided: evidence", "an interval has the level 90 and holds its composite", func(t *testing.T) {
		for _, c := range []struct{ key, domain string }{
			{starter.live, domain}, {starter.live, first}, {starter.test, "acme.test"}, {starter.test, "cohort.test"},
			{starter.test, "struggling.test"}, {starter.test, "unicorn.test"},
		} {
			r := s.get(t, "/v1/score/"+c.domain+"?include=evidence", c.key).wants(t, 200, "")
			low, high, composite := r.number("evidence.interval.low"), r.number("evidence.interval.high"), r.number("composite_score")
			if low > composite || high < composite || high == low || r.at("evidence.interval.level") != float64(scoring.IntervalLevel) {
				t.Errorf("%s: %v with %v", c.domain, composite, r.at("evidence.interval"))
			}
		}
	})
	s.rule("decided: evidence", "less data makes a wider interval", func(t *testing.T) {
		width := func(domain, key string) float64 {
			r := s.get(t, "/v1/company/"+domain+"/confidence", key).wants(t, 200, "")
			return r.number("interval.high") - r.number("interval.low")
		}
		if known, unknown := width(domain, starter.live), width(first, starter.live); known >= unknown {
			t.Errorf("the interval of %s is %v points wide, that of %s without data %v", domain, known, first, unknown)
		}
		widest := width("struggling.test", starter.test)
		for _, other := range []string{"acme.test", "cohort.test", "unicorn.test"} {
			if w := width(other, starter.test); w >= widest {
				t.Errorf("%s is within %v points, struggling.test within %v", other, w, widest)
			}
		}
	})
	s.rule("decided: evidence", "a signal is observed, missing or not applicable, and a stale one is observed", func(t *testing.T) {
		for _, c := range []struct{ key, domain string }{
			{starter.live, domain}, {starter.live, first}, {starter.test, "acme.test"}, {starter.test, "cohort.test"},
			{starter.test, "struggling.test"}, {starter.test, "unicorn.test"},
		} {
			r := s.get(t, "/v1/company/"+c.domain+"/confidence", c.key).wants(t, 200, "")
			missing := make(map[any]bool)
			for _, m := range r.list("missing_signals") {
				missing[m.(map[string]any)["id"]] = true
			}
			left := r.list("not_applicable_signals")
			if n := int(r.number("signals_observed")) + len(missing) + len(left); n != 67 ||
				int(r.number("signals_not_applicable")) != len(left) {
				t.Errorf("%s: %d signals in all: %v observed, %d missing, %d not applicable", c.domain, n, r.at("signals_observed"),
					len(missing), len(left))
			}
			for _, id := range left {
				signal, ok := scoring.Lookup(id.(string))
				if missing[id] || !ok || len(signal.NotFor) == 0 {
					t.Errorf("%s: %v is not applicable", c.domain, id)
				}
			}
			warned := make(map[any]bool)
			for _, w := range r.list("data_warnings") {
				if warning := w.(map[string]any); warning["reason"] == "stale" {
					warned[warning["source"]] = true
				}
			}
			for _, v := range r.list("stale_signals") {
				stale := v.(map[string]any)
				if id := stale["id"]; missing[id] || slices.Contains(left, id) || !warned[stale["source"]] ||
					stale["age_days"].(float64) <= 0 {
					t.Errorf("%s: %v is stale", c.domain, stale)
				}
			}
		}
		if r := s.get(t, "/v1/company/cohort.test/confidence", starter.test); len(r.list("stale_signals")) == 0 ||
			len(r.list("not_applicable_signals")) == 0 {
			t.Errorf("the sandbox shows no stale signal, or none that is not applicable: %.300s", r.raw)
		}
	})
	s.rule("decided: evidence", "score and explain print the interval", func(t *testing.T) {
		r := s.get(t, "/v1/score/"+domain+"?include=evidence", starter.live).wants(t, 200, "")
		want := fmt.Sprintf("%.1f, likely %.0f to %.0f", r.number("composite_score"), r.number("evidence.interval.low"),
			r.number("evidence.interval.high"))
		for _, args := range [][]string{{"score", domain, "--key", starter.live, "--url", s.base}, {"explain", domain}} {
			if out := s.cli(t, args...); !strings.Contains(out, want) {
				t.Errorf("%s prints %.300s, want %q", args[0], out, want)
			}
		}
		if out := s.cli(t, "score", domain, "--output", "json", "--key", starter.live, "--url", s.base); strings.TrimSpace(out) != r.raw {
			t.Errorf("score --output json prints %s, want %s", out, r.raw)
		}
	})
	s.rule("decided: evidence", "POST of a score and of a batch take a list of names", func(t *testing.T) {
		plain := s.call(t, "POST", "/v1/score", starter.live, `{"domain":"`+domain+`"}`)
		full := s.call(t, "POST", "/v1/score", starter.live, `{"domain":"`+domain+`","include":["evidence"]}`).wants(t, 200, "")
		if full.at("evidence") == nil || evidencePart.ReplaceAllString(full.raw, "") != plain.raw {
			t.Errorf("plain %s\nwith evidence %s", plain.raw, full.raw)
		}
		domains := `{"domains":["` + domain + `","` + first + `","never-scored.com"]`
		plain = s.call(t, "POST", "/v1/scores/batch", starter.live, domains+`}`).wants(t, 200, "")
		full = s.call(t, "POST", "/v1/scores/batch", starter.live, domains+`,"include":["evidence"]}`).wants(t, 200, "")
		if n := len(evidencePart.FindAllString(full.raw, -1)); n != 2 || evidencePart.ReplaceAllString(full.raw, "") != plain.raw {
			t.Errorf("plain %s\nwith evidence of %d %s", plain.raw, n, full.raw)
		}
	})
	s.rule("decided: evidence", "an unknown name is refused by the name of its field", func(t *testing.T) {
		for _, key := range []struct{ key, domain string }{{starter.live, domain}, {starter.test, "acme.test"}} {
			for _, query := range []string{"include=signals", "include=", "include=evidence,signals", "include=evidence&include=x"} {
				s.get(t, "/v1/score/"+key.domain+"?"+query, key.key).wants(t, 400, "include must be one of ['evidence']")
			}
			for _, include := range []string{`["signals"]`, `"evidence"`, `[1]`, `["evidence",""]`} {
				s.call(t, "POST", "/v1/score", key.key, `{"domain":"`+key.domain+`","include":`+include+`}`).wants(t, 400,
					"body.include invalid")
				s.call(t, "POST", "/v1/scores/batch", key.key, `{"domains":["`+key.domain+`"],"include":`+include+`}`).wants(t, 400,
					"body.include invalid")
			}
		}
	})
	s.rule("decided: evidence", "the manifest has the percentiles of each signal and what it means nothing for", func(t *testing.T) {
		for _, v := range s.get(t, "/v1/signals", starter.live).wants(t, 200, "").list("signals") {
			signal := v.(map[string]any)
			rule := signal["normalization"].(map[string]any)
			p10, p50, p90 := rule["p10"].(float64), rule["p50"].(float64), rule["p90"].(float64)
			if signal["direction"] == "lower" {
				p10, p90 = p90, p10
			}
			if signal["unit"] != "boolean" && !(p10 < p50 && p50 < p90) || rule["population"] == "" || rule["basis"] == "" ||
				signal["max_age_days"].(float64) < 1 {
				t.Errorf("%v: %v", signal["id"], v)
			}
			known, _ := scoring.Lookup(signal["id"].(string))
			if len(signal["not_applicable_to"].([]any)) != len(known.NotFor) {
				t.Errorf("%v is not applicable to %v", signal["id"], signal["not_applicable_to"])
			}
		}
	})
}
