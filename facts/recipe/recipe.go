// Package recipe imports the files of publishers: a recipe, one SQL statement with a head of comments, turns them into rows of an import.
//
//   - recipe.go reads the head of a recipe.
//   - scratch.go, place.go and header.go prepare the given files: unpack archives, name the files, check their columns.
//   - run.go runs the statement, reads its result and reports it.
//
// The statement runs in an engine that the caller gives. Package recipe has no store.
package recipe

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"companyscore/sql"
)

// Recipe is one recipe. It does not change after Parse.
type Recipe struct {
	Name          string   // lower case letters, digits and hyphens
	Publisher     string   // who makes the files
	Documentation string   // URL of the publisher's description of the files
	Licence       string   // of the files
	Format        string   // of the files, in words
	Signals       []string // that the recipe gives: ids of signals and columns of an import
	Files         []File   // at least one
	Statement     string   // the whole text
}

// File is a kind of file that a recipe reads.
type File struct {
	Key      string   // name of the parameter that has the paths
	Pattern  string   // of base names, as in path.Match; a suffix .gz or .bz2 may follow it
	Required []string // columns that the first line must name; nil: the first line is not read
}

// Parameters that every recipe has besides its files.
const (
	identifiersKey = "identifiers"
	dayKey         = "day"
)

var (
	headLine   = regexp.MustCompile(`^--\s*([a-z]+)(?:\s+([^\s:]+))?\s*:\s*(.*?)\s*$`)
	plainName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	plainKey   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	requiredIn = regexp.MustCompile(`^(.*?)\s*\[required:(.*)\]$`)
)

// textMax is the maximum size of a recipe in bytes.
const textMax = 256 << 10

// Parse reads a recipe. The head is the comments before the statement: lines such as `-- licence: MIT`. It has a line `recipe`
// with the name and for each file a line `-- file KEY: PATTERN [required: column, column]`. Other comments may stand between
// them. The statement must read each file as {KEY:String}.
func Parse(text string) (*Recipe, error) {
	if len(text) > textMax {
		return nil, fmt.Errorf("the recipe is longer than %d bytes", textMax)
	}
	r := &Recipe{Statement: text}
	seen := map[string]bool{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if !strings.HasPrefix(line, "--") {
			break
		}
		match := headLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		if err := r.head(match[1], match[2], match[3], seen); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	switch {
	case r.Name == "":
		return nil, errors.New("the head has no line `-- recipe: NAME`")
	case len(r.Files) == 0:
		return nil, errors.New("the head has no line `-- file KEY: PATTERN`")
	}
	for _, f := range r.Files {
		if !regexp.MustCompile(`\{\s*` + f.Key + `\s*:\s*String\s*\}`).MatchString(text) {
			return nil, fmt.Errorf("the statement does not read {%s:String}, which the head declares", f.Key)
		}
	}
	return r, nil
}

// head sets what a line of the head says. key is empty but for files. seen has the lines so far.
func (r *Recipe) head(kind, key, value string, seen map[string]bool) error {
	texts := map[string]*string{"recipe": &r.Name, "publisher": &r.Publisher, "documentation": &r.Documentation, "licence": &r.Licence,
		"format": &r.Format, "signals": new(string)}
	text, isText := texts[kind]
	switch {
	case kind == "file" && key != "":
		kind += " " + key
	case !isText || key != "":
		return nil // another comment
	}
	if seen[kind] {
		return fmt.Errorf("a second line %q", kind)
	}
	seen[kind] = true
	if value == "" {
		return fmt.Errorf("%s has no value", kind)
	}
	if !isText {
		return r.file(key, value)
	}
	*text = value
	switch {
	case kind == "recipe" && !plainName.MatchString(value):
		return fmt.Errorf("the name %q has other characters than a-z, 0-9 and hyphens", value)
	case kind == "signals":
		r.Signals = list(value)
	}
	return nil
}

func (r *Recipe) file(key, value string) error {
	f := File{Key: key, Pattern: value}
	if match := requiredIn.FindStringSubmatch(value); match != nil {
		f.Pattern, f.Required = match[1], list(match[2])
		if len(f.Required) == 0 {
			return fmt.Errorf("file %s requires no column", key)
		}
	}
	_, err := path.Match(f.Pattern, "")
	switch {
	case !plainKey.MatchString(key):
		return fmt.Errorf("the parameter %q has other characters than a-z, 0-9 and underscores", key)
	case key == identifiersKey || key == dayKey:
		return fmt.Errorf("the parameter %q is that of every recipe: choose another name", key)
	case err != nil || f.Pattern == "" || strings.Contains(f.Pattern, "/"):
		return fmt.Errorf("the pattern %q is none of base names", f.Pattern)
	}
	r.Files = append(r.Files, f)
	return nil
}

// list splits a list at commas.
func list(text string) (all []string) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}

// Shipped returns the recipes of the program by name.
func Shipped() []*Recipe {
	var all []*Recipe
	for _, name := range sql.Recipes() {
		text, _ := sql.Recipe(name)
		r, err := Parse(text)
		if err != nil {
			panic(fmt.Sprintf("recipe %s: %v", name, err)) // a test parses all
		}
		all = append(all, r)
	}
	return all
}

// Load returns the shipped recipe of a name, or that of a file if the name ends with .sql.
func Load(name string) (*Recipe, error) {
	if !strings.HasSuffix(name, ".sql") {
		text, ok := sql.Recipe(name)
		if !ok {
			return nil, fmt.Errorf("no recipe %q: use %s, or a FILE.sql; `companyscore facts recipes` lists them", name,
				strings.Join(sql.Recipes(), ", "))
		}
		return Parse(text)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Patterns returns the patterns of the files that the recipe reads.
func (r *Recipe) Patterns() string {
	var all []string
	for _, f := range r.Files {
		all = append(all, f.Pattern)
	}
	return strings.Join(all, ", ")
}

// compressions lists the suffixes of single files that the engine decompresses.
var compressions = []string{".gz", ".bz2"}

// matches reports whether a base name is one of the file.
func (f File) matches(base string) bool {
	return slices.ContainsFunc(append([]string{""}, compressions...), func(suffix string) bool {
		name, ok := strings.CutSuffix(base, suffix)
		matched, _ := path.Match(f.Pattern, name)
		return ok && matched
	})
}
