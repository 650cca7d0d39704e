package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted matches paths in backquotes: a name with a slash or with a file extension.
var quoted = regexp.MustCompile("`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]*)+|[A-Za-z0-9_-]+\\.(?:go|lua|sql|md|csv|yaml))`")

// questions is the number of questions in docs/architecture.md.
const questions = 24

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

var (
	fencedBlock = regexp.MustCompile("(?ms)^```[a-z]*$.*?^```$")
	inlineCode  = regexp.MustCompile("`[^`\n]*`")
	mdLink      = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	mdHeading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// notInAnchors are characters of a heading that its anchor does not have.
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of the headings of a page, as hosts of repositories make them.
func anchors(page string) map[string]bool {
	found := make(map[string]bool)
	for _, heading := range mdHeading.FindAllStringSubmatch(fencedBlock.ReplaceAllString(page, ""), -1) {
		text := notInAnchors.ReplaceAllString(linkText.ReplaceAllString(heading[1], "$1"), "")
		found[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), " ", "-")] = true
	}
	return found
}

// documents returns the text of each document of the repository by its path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, path := range strings.Fields(string(out)) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

// TestLinksOfDocumentsResolve checks that each relative link of a document leads to a file of the
// repository, and to a heading of it.
func TestLinksOfDocumentsResolve(t *testing.T) {
	t.Parallel()
	links := 0
	for document, text := range documents(t) {
		prose := inlineCode.ReplaceAllString(fencedBlock.ReplaceAllString(text, ""), "")
		for _, match := range mdLink.FindAllStringSubmatch(prose, -1) {
			link := match[1]
			if strings.Contains(link, "://") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(link, "#")
			target := document
			if path != "" {
				target = filepath.Join(filepath.Dir(document), path)
			}
			info, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s: link %s: %v", document, link, err)
				continue
			}
			if anchor == "" {
				continue
			}
			if info.IsDir() {
				t.Errorf("%s: link %s: a directory has no headings", document, link)
				continue
			}
			page, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(page))[anchor] {
				t.Errorf("%s: link %s: no such heading", document, link)
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links were checked, want at least 100", links)
	}
}

var (
	// makeCall matches `make TARGET` in code, at the begin of a line or of a piece of code.
	makeCall   = regexp.MustCompile("(?m)(?:^|`|^\\$ )make ([a-z][a-z0-9-]*)")
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	keyFlag    = regexp.MustCompile(`--key[ =]`)
)

// TestMakeTargetsOfDocumentsExist checks the targets that documents name, also outside of blocks.
func TestMakeTargetsOfDocumentsExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := make(map[string]bool)
	for _, match := range makeTarget.FindAllStringSubmatch(string(text), -1) {
		targets[match[1]] = true
	}
	calls := 0
	for document, text := range documents(t) {
		for _, match := range makeCall.FindAllStringSubmatch(text, -1) {
			calls++
			if !targets[match[1]] {
				t.Errorf("%s: there is no target %s", document, match[1])
			}
		}
	}
	if calls < 50 {
		t.Errorf("%d calls were checked, want at least 50", calls)
	}
}

// adrWords is the maximum number of words of a decision record, table bars included.
const adrWords = 400

// TestDecisionRecordsAreShort counts the words of each page of docs/adr, as wc -w does.
func TestDecisionRecordsAreShort(t *testing.T) {
	t.Parallel()
	records := 0
	for document, text := range documents(t) {
		if !strings.HasPrefix(document, "docs/adr/") {
			continue
		}
		records++
		if n := len(strings.Fields(text)); n > adrWords {
			t.Errorf("%s has %d words, want at most %d", document, n, adrWords)
		}
	}
	if records < 10 {
		t.Errorf("%d decision records were counted, want at least 10", records)
	}
}

// TestDocumentsPassNoKeyAsArgument checks that documents give keys in COMPANYSCORE_KEY: other users
// can see the arguments of a process.
func TestDocumentsPassNoKeyAsArgument(t *testing.T) {
	t.Parallel()
	for document, text := range documents(t) {
		if flag := keyFlag.FindString(text); flag != "" {
			t.Errorf("%s gives a key by %s", document, flag)
		}
	}
}
