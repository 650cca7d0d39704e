package main

import (
	"fmt"
	"regexp"
	"strings"
)

// block is a fenced block of a page, or the script of a setup comment.
type block struct {
	line  int // of its first line of text, from 1
	lang  string
	text  string
	setup bool
	// reason says why the block cannot run here. It is empty for a block that can.
	reason string
	// fails is set if the last command of the block is to fail, mayFail if it may.
	fails, mayFail bool
}

var (
	fence     = regexp.MustCompile("^(```+)([a-z]*)$")
	directive = regexp.MustCompile(`^<!-- docs-test: (.*?)(?: -->)?$`)
)

// parse returns the blocks of a page in their order. A comment before a block, with blank lines
// between them at most, says how to treat it:
//
//	<!-- docs-test: not run: REASON -->
//	<!-- docs-test: fails -->
//	<!-- docs-test: may fail: REASON -->
//
// The last two are about the last command of the block.
// A comment of several lines that begins with `<!-- docs-test: setup` has commands that readers
// of the page have done before.
func parse(text string) ([]block, error) {
	var blocks []block
	var next block
	lines := strings.Split(text, "\n")
	var paragraph, list bool
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch open, comment := fence.FindStringSubmatch(line), directive.FindStringSubmatch(line); {
		case open != nil:
			b := next
			next = block{}
			b.line, b.lang = i+2, open[2]
			end := find(lines, i+1, open[1])
			if end < 0 {
				return nil, fmt.Errorf("%d: the block has no end", i+1)
			}
			if b.lang == "" {
				return nil, fmt.Errorf("%d: the block has no language; diagrams and other text are ```text", i+1)
			}
			b.text = strings.Join(lines[i+1:end], "\n")
			blocks = append(blocks, b)
			i = end
		case comment != nil && comment[1] == "setup":
			end := find(lines, i+1, "-->")
			if end < 0 {
				return nil, fmt.Errorf("%d: the comment has no end", i+1)
			}
			blocks = append(blocks, block{line: i + 2, lang: "sh", text: strings.Join(lines[i+1:end], "\n"), setup: true})
			i = end
		case comment != nil:
			if reason, ok := strings.CutPrefix(comment[1], "not run: "); ok && reason != "" {
				next.reason = reason
			} else if reason, ok := strings.CutPrefix(comment[1], "may fail: "); ok && reason != "" {
				next.mayFail = true
			} else if comment[1] == "fails" {
				next.fails = true
			} else {
				return nil, fmt.Errorf("%d: unknown comment %q", i+1, comment[1])
			}
		case strings.HasPrefix(line, "    ") && !paragraph && !list:
			return nil, fmt.Errorf("%d: an indented block has no language; use a fence", i+1)
		case strings.TrimSpace(line) == "":
			paragraph = false
		default:
			if next != (block{}) {
				return nil, fmt.Errorf("%d: a comment of docs-test is not followed by a block", i+1)
			}
			paragraph = true
			if !strings.HasPrefix(line, " ") {
				list = strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "1. ") ||
					(list && regexp.MustCompile(`^\d+\. `).MatchString(line))
			}
		}
	}
	return blocks, nil
}

// find returns the index of the first line from on that equals want, or -1.
func find(lines []string, from int, want string) int {
	for i := from; i < len(lines); i++ {
		if lines[i] == want {
			return i
		}
	}
	return -1
}

// command is a command of a console block with the output that the page shows.
type command struct {
	line int // of the page
	text string
	want string
}

// commands returns the commands of a console block: lines that begin with "$ ", and those after a
// line that ends with a backslash. All other lines are output.
func commands(b block) ([]command, error) {
	var found []command
	continued := false
	for i, line := range strings.Split(b.text, "\n") {
		text, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand:
			found = append(found, command{line: b.line + i, text: text})
		case len(found) == 0:
			return nil, fmt.Errorf("%d: a console block begins with a line `$ COMMAND`", b.line+i)
		case continued:
			found[len(found)-1].text += "\n" + line
		default:
			found[len(found)-1].want += line + "\n"
		}
		continued = (isCommand || continued) && strings.HasSuffix(line, `\`)
	}
	return found, nil
}
