package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// quoted matches paths in backquotes: a name with a slash or with a file extension.
var quoted = regexp.MustCompile("`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]*)+|[A-Za-z0-9_-]+\\.(?:go|lua|sql|md|csv|yaml))`")

// questions is the number of questions in docs/architecture.md.
const questions = 20

// TestPathsOfDocumentsExist checks that the paths in docs/architecture.md and CONTRIBUTING.md
// exist.
func TestPathsOfDocumentsExist(t *testing.T) {
	t.Parallel()
	for document, least := range map[string]int{"docs/architecture.md": questions, "CONTRIBUTING.md": questions} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		found := quoted.FindAllStringSubmatch(string(text), -1)
		if len(found) < least {
			t.Errorf("%s names %d paths, want at least %d", document, len(found), least)
		}
		for _, match := range found {
			if _, err := os.Stat(match[1]); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}

// TestEachQuestionHasOnePath checks the form of the questions in docs/architecture.md.
func TestEachQuestionHasOnePath(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| question | path |\n|---|---|\n")
	rows := 0
	for line := range strings.Lines(table) {
		rows++
		if n := len(quoted.FindAllString(line, -1)); n != 1 {
			t.Errorf("a question has %d paths, want 1: %s", n, line)
		}
	}
	if rows != questions {
		t.Errorf("there are %d questions, want %d", rows, questions)
	}
}
