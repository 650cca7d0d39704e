package embedded

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed allowed.txt
var allowedText string

// allowed has the names that statements of analysts may use, from allowed.txt, which explains its form. Names are lower case, but those of
// zones.
type allowed struct {
	functions      map[string]signature
	combinators    []string
	tableFunctions map[string]bool
	types          map[string]bool
	formats        map[string]bool
	zones          map[string]bool

	// What the engine has beyond the list. The guard refuses these names and leaves others, such as those of columns, to the engine.
	otherFunctions, otherTableFunctions, otherTypes, otherFormats map[string]bool
}

// signature has the kinds of the arguments of a function.
type signature struct {
	kinds []argumentKind
	last  argumentKind // of the last argument, whatever its position
}

type argumentKind uint8

const (
	anyArgument  argumentKind = iota
	zoneArgument              // a literal time zone of the list, or a number
	typeArgument              // a literal data type of the list
)

// reads reports whether the guard reads an argument of the function.
func (s signature) reads() bool { return s.kinds != nil || s.last != anyArgument }

// at returns the kind of argument i, from 0.
func (s signature) at(i int, last bool) argumentKind {
	switch {
	case i < len(s.kinds):
		return s.kinds[i]
	case last:
		return s.last
	}
	return anyArgument
}

// parseSignature parses a function of the list, such as toTimezone(_,zone).
func parseSignature(text string) (name string, s signature, err error) {
	name, arguments, given := strings.Cut(text, "(")
	if !given {
		return name, s, nil
	}
	arguments, closed := strings.CutSuffix(arguments, ")")
	if !closed {
		return "", s, fmt.Errorf("%s has no closing bracket", text)
	}
	kinds := map[string]argumentKind{"_": anyArgument, "zone": zoneArgument, "type": typeArgument}
	rest, last := false, anyArgument
	for word := range strings.SplitSeq(arguments, ",") {
		if word == "..." {
			rest = true
			continue
		}
		kind, ok := kinds[word]
		if !ok {
			return "", s, fmt.Errorf("%s has the argument %q: use _, zone, type or three dots", text, word)
		}
		if last = kind; !rest {
			s.kinds = append(s.kinds, kind)
		}
	}
	if rest {
		s.last = last
	}
	return name, s, nil
}

// readSections returns the words of a list by section.
func readSections(list string) map[string][]string {
	sections := map[string][]string{}
	section := ""
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(name, "]")
			continue
		}
		sections[section] = append(sections[section], strings.Fields(line)...)
	}
	return sections
}

// readAllowed parses a list and compares it with the engine of c. It returns an error that has every name that the engine lacks.
func readAllowed(c *libraryConn, list string) (*allowed, error) {
	sections := readSections(list)
	var unknown []string
	// names returns the names of a section and those of the engine that are not in it. Each row of the query is a name and, for an alias,
	// what it stands for.
	names := func(section, query string) (in map[string]string, others map[string]bool, err error) {
		out, _, err := c.query(query, "TSV", nil)
		if err != nil {
			return nil, nil, fmt.Errorf("list %s: %w", section, err)
		}
		aliases := map[string]string{}
		for row := range strings.Lines(string(out)) {
			name, stands, _ := strings.Cut(strings.TrimRight(row, "\n"), "\t")
			aliases[strings.ToLower(name)] = strings.ToLower(stands)
		}
		in, others = map[string]string{}, map[string]bool{}
		for _, word := range sections[section] {
			name, _, _ := strings.Cut(word, "(")
			if _, ok := aliases[strings.ToLower(name)]; !ok {
				unknown = append(unknown, name)
			}
			in[strings.ToLower(name)] = word
		}
		for name, stands := range aliases {
			if word, ok := in[stands]; ok && in[name] == "" {
				in[name] = word
			}
			others[name] = in[name] == ""
		}
		return in, others, nil
	}
	a := &allowed{functions: map[string]signature{}, combinators: sections["combinators"]}
	functions, others, err := names("functions", "SELECT name, alias_to FROM system.functions")
	if err != nil {
		return nil, err
	}
	a.otherFunctions = others
	for _, name := range sections["operators"] {
		functions[strings.ToLower(name)] = name
	}
	for name, word := range functions {
		if _, a.functions[name], err = parseSignature(word); err != nil {
			return nil, fmt.Errorf("list of what analysts may name: %w", err)
		}
	}
	for _, s := range []struct {
		name, query string
		in, others  *map[string]bool
	}{
		{"combinators", "SELECT name FROM system.aggregate_function_combinators", new(map[string]bool), new(map[string]bool)},
		{"table functions", "SELECT name FROM system.table_functions", &a.tableFunctions, &a.otherTableFunctions},
		{"types", "SELECT name, alias_to FROM system.data_type_families", &a.types, &a.otherTypes},
		{"formats", "SELECT name FROM system.formats WHERE is_output", &a.formats, &a.otherFormats},
	} {
		in, others, err := names(s.name, s.query)
		if err != nil {
			return nil, err
		}
		*s.in, *s.others = map[string]bool{}, others
		for name := range in {
			(*s.in)[name] = true
		}
	}
	out, _, err := c.query("SELECT time_zone FROM system.time_zones", "TSV", nil)
	if err != nil {
		return nil, fmt.Errorf("list time zones: %w", err)
	}
	a.zones = map[string]bool{}
	has := strings.Fields(string(out))
	for _, zone := range sections["zones"] {
		if a.zones[zone] = true; !slices.Contains(has, zone) {
			unknown = append(unknown, zone)
		}
	}
	if unknown != nil {
		return nil, fmt.Errorf("analysts are allowed what this engine does not have: %s", strings.Join(unknown, ", "))
	}
	return a, nil
}

// function returns the signature of an allowed function. A name may be that of an aggregate with combinators.
func (a *allowed) function(name string) (signature, bool) {
	name = strings.ToLower(name)
	for {
		if s, ok := a.functions[name]; ok {
			return s, true
		}
		i := slices.IndexFunc(a.combinators, func(c string) bool { return strings.HasSuffix(name, strings.ToLower(c)) })
		if i < 0 {
			return signature{}, false
		}
		name = name[:len(name)-len(a.combinators[i])]
	}
}
