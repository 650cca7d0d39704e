package source

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

// technicalCSV has the terms by which technical roles are told from others. Its uses are:
//
//   - role: a title with it is technical;
//   - other: any other title with it is not, nor is a department with it;
//   - topic: any other title with it is technical, and a role of a department with it.
//
// A term matches whole words. A * at its start or end stands for any letters.
//
//go:embed technicalroles.csv
var technicalCSV string

// technicalTerms is technicalCSV by use, each term in the form that matches wordsOf.
var technicalTerms = func() map[string][]string {
	byUse := make(map[string][]string)
	for _, row := range table(technicalCSV, 3) {
		use, term := row[1], row[2]
		word := " " + wordsOf(term) + " "
		if strings.HasPrefix(term, "*") {
			word = strings.TrimPrefix(word, " ")
		}
		if strings.HasSuffix(term, "*") {
			word = strings.TrimSuffix(word, " ")
		}
		byUse[use] = append(byUse[use], word)
	}
	return byUse
}()

// wordsOf returns the words of a text in lower case, separated by single spaces.
func wordsOf(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ")
}

// isTechnical reports whether a role is in engineering, data, security, research, design or
// product. Its title decides, and if that does not tell, its departments.
func isTechnical(r role) bool {
	has := func(text, use string) bool {
		return slices.ContainsFunc(technicalTerms[use], func(term string) bool { return strings.Contains(text, term) })
	}
	title := " " + wordsOf(r.Title) + " "
	switch {
	case has(title, "role"):
		return true
	case has(title, "other"):
		return false
	case has(title, "topic"):
		return true
	}
	return slices.ContainsFunc(r.Departments, func(d string) bool {
		d = " " + wordsOf(d) + " "
		return (has(d, "topic") || has(d, "role")) && !has(d, "other")
	})
}
