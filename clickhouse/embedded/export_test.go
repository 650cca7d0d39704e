package embedded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NamedSettings returns the settings that have a rule by name.
func NamedSettings() []string { return slices.Sorted(maps.Keys(namedSettings)) }

// WithConfiguration opens an engine with a configuration file of a ClickHouse server and returns the output of each statement, or
// "exception" and the code of its error.
func WithConfiguration(data, file string, statements []string) (answers []string, err error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	lib, err := loadLibrary(path)
	if err != nil {
		return nil, err
	}
	handle := lib.open("clickhouse", "--path="+data, "--config-file="+file)
	if handle == nil {
		return nil, errors.New("the engine does not open")
	}
	c := &libraryConn{engine: &engine{lib: lib}, handle: handle}
	defer c.close()
	for _, statement := range statements {
		out, _, err := c.query(statement, "TSV", nil)
		if e, ok := errors.AsType[*exception](err); ok {
			out = fmt.Appendf(nil, "exception %d", e.code)
		}
		answers = append(answers, string(out))
	}
	return answers, nil
}

// Allowing returns c with more names that analysts may use: lines of allowed.txt.
func Allowing(c Config, more string) Config {
	c.allowed = allowedText + "\n" + more
	return c
}

// AllowedFunctions returns the functions that analysts may call, without aliases.
func AllowedFunctions() []string { return Allowed("functions") }

// Allowed returns the names in a section of allowed.txt.
func Allowed(section string) (names []string) {
	for _, word := range sections[section] {
		name, _, _ := strings.Cut(word, "(")
		names = append(names, name)
	}
	return names
}

var sections = readSections(allowedText)
