package main

import (
	"fmt"
	"regexp"
	"strings"
)

// varying are values that differ between two runs and are compared by their form alone.
var varying = []struct {
	form *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "(id)"},
	{regexp.MustCompile(`svc_(live|test)_[0-9A-Za-z]{30}`), "svc_${1}_(key)"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`), "(time)"},
	{regexp.MustCompile(`\bin \d+(\.\d+)? s\b`), "in (time)"},
}

// compare returns how the output of a command differs from what a page shows, or "". In want,
// "..." stands for any text of a line, and a line of "..." alone for any number of lines.
func compare(want, got string) string {
	wants, gots := plain(want), plain(got)
	i, skip := 0, false
	for _, w := range wants {
		if w == "..." {
			skip = true
			continue
		}
		line := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(w), regexp.QuoteMeta("..."), ".*") + "$")
		from := i
		for i < len(gots) && skip && !line.MatchString(gots[i]) {
			i++
		}
		switch {
		case i == len(gots) && skip:
			return fmt.Sprintf("want a line\n\t%s\ngot\n\t%s", w, strings.Join(gots[from:], "\n\t"))
		case i == len(gots):
			return fmt.Sprintf("want\n\t%s\ngot no more output", w)
		case !line.MatchString(gots[i]):
			return fmt.Sprintf("want\n\t%s\ngot\n\t%s", w, gots[i])
		}
		i++
		skip = false
	}
	if i < len(gots) && !skip {
		return "not shown on the page:\n\t" + strings.Join(gots[i:], "\n\t")
	}
	return ""
}

// plain returns the lines of an output without what differs between runs.
func plain(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for _, v := range varying {
		text = v.form.ReplaceAllString(text, v.name)
	}
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return lines
}
