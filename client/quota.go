package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Quota is one limit of calls, as the headers RateLimit and RateLimit-Policy report it.
type Quota struct {
	// Limit is the number of calls in a Window, zero if the answer does not report it.
	Limit  int64
	Window time.Duration
	// Remaining is the number of calls left.
	Remaining int64
	// Reset is the time until Remaining is Limit again.
	Reset time.Duration
}

// parseQuotas returns the limits in a header by name. It leaves out what it cannot read.
func parseQuotas(header http.Header) map[string]Quota {
	var quotas map[string]Quota
	for name, parameters := range quotaItems(header.Values("RateLimit")) {
		remaining, ok := parameters["r"]
		if !ok {
			continue
		}
		if quotas == nil {
			quotas = make(map[string]Quota)
		}
		quotas[name] = Quota{Remaining: remaining, Reset: seconds(parameters["t"])}
	}
	for name, parameters := range quotaItems(header.Values("RateLimit-Policy")) {
		if q, ok := quotas[name]; ok {
			q.Limit, q.Window = parameters["q"], seconds(parameters["w"])
			quotas[name] = q
		}
	}
	return quotas
}

// seconds returns a duration. It bounds n, which comes from a header, to about a century.
func seconds(n int64) time.Duration { return time.Duration(min(max(n, 0), 1<<32)) * time.Second }

// quotaItems returns the whole-number parameters of each item of a list such as `"cold";r=1;t=2, "cached";r=3`.
func quotaItems(lines []string) map[string]map[string]int64 {
	items := make(map[string]map[string]int64)
	for _, line := range lines {
		for part := range splitUnquoted(line, ',') {
			var name string
			parameters := make(map[string]int64)
			for field := range splitUnquoted(part, ';') {
				field = strings.TrimSpace(field)
				if strings.HasPrefix(field, `"`) {
					name = strings.Trim(field, `"`)
					continue
				}
				key, value, _ := strings.Cut(field, "=")
				if number, err := strconv.ParseInt(value, 10, 64); err == nil && number >= 0 {
					parameters[key] = number
				}
			}
			if name != "" {
				items[name] = parameters
			}
		}
	}
	return items
}

// splitUnquoted yields the parts of a text between separators that are not between quotes.
func splitUnquoted(text string, separator rune) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		quoted := false
		for _, part := range strings.FieldsFunc(text, func(r rune) bool {
			if r == '"' {
				quoted = !quoted
			}
			return r == separator && !quoted
		}) {
			if !yield(part) {
				return
			}
		}
	}
}
