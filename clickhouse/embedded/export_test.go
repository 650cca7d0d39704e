package embedded

import (
	"context"
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

// RunRecipes runs recipes over the same files one after the other in one engine and returns the errors, "" for none.
func RunRecipes(ctx context.Context, data string, recipes []Recipe) (failures []string, err error) {
	library, err := Find()
	if err != nil {
		return nil, err
	}
	e, err := openEngine(library, data, "companyscore", 0)
	if err != nil {
		return nil, err
	}
	guard, err := newRecipeGuard(e.control, slices.Sorted(maps.Keys(recipes[0].Files)), recipes[0].limits(), 1<<30)
	if err != nil {
		return nil, err
	}
	for _, r := range recipes {
		text := ""
		if _, err := r.run(ctx, e, guard); err != nil {
			text = err.Error()
		}
		failures = append(failures, text)
	}
	return failures, e.close()
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
