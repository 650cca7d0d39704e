package embedded

import (
	"errors"
	"strings"
)

// statement is what the server must know of one SQL statement before the engine sees it.
type statement struct {
	text   string // the statement, without closing semicolon or inline data
	verb   string // first keyword, upper case
	format string // name in the FORMAT clause, "" if none

	// An INSERT that carries data: data is the offset of its first byte in the source, infile that of the clause before which
	// FROM INFILE belongs, so text[:infile] + FROM INFILE + text[infile:] reads the data from a file.
	hasData bool
	data    int
	infile  int
}

var errMultipleStatements = errors.New("more than one statement in a request")

// parseStatement reads the outline of the one statement in src. For an INSERT with data src may be cut off inside the data.
func parseStatement(src string) (statement, error) {
	lex := lexer{src: src}
	first := lex.next()
	for first.isMark('(') {
		first = lex.next()
	}
	st := statement{verb: strings.ToUpper(first.text), infile: -1}
	end := len(src)
	depth := 0
	for tok := first; ; {
		next := lex.next()
		switch {
		case tok.isMark('(') || tok.isMark('[') || tok.isMark('{'):
			depth++
		case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
			depth--
		case tok.isMark(';'):
			if next.kind != tokenEnd {
				return st, errMultipleStatements
			}
			end = tok.pos
		case depth > 0:
		case st.verb == "INSERT" && (tok.is("SELECT") || tok.is("WITH") || tok.is("WATCH") || tok.is("INFILE")):
			st.verb = "INSERT SELECT" // carries no data; may still name a FORMAT
		case st.verb == "INSERT" && tok.is("SETTINGS") && st.infile < 0:
			st.infile = tok.pos
		case st.verb == "INSERT" && tok.is("VALUES"):
			st.hasData, st.format = true, "Values"
			st.data = tok.pos + len(tok.text)
			st.text = src[:tok.pos] + "FORMAT Values"
			if st.infile < 0 {
				st.infile = tok.pos
			}
			return st, nil
		case tok.is("FORMAT") && next.kind == tokenWord:
			if st.verb != "INSERT" {
				after := lexer{src: src, pos: lex.pos}
				if t := after.next(); t.kind == tokenEnd || t.isMark(';') || t.is("SETTINGS") {
					st.format = next.text // elsewhere it is a column of that name
				}
			} else {
				st.format = next.text
				st.hasData = true
				st.data = dataStart(src, next.pos+len(next.text))
				st.text = src[:next.pos+len(next.text)]
				if st.infile < 0 {
					st.infile = tok.pos
				}
				return st, nil
			}
		}
		if next.kind == tokenEnd {
			break
		}
		tok = next
	}
	st.text = src[:end]
	return st, nil
}

// dataStart passes over the blanks after the format name and over one line end, as ClickHouse does: what follows is data.
func dataStart(src string, i int) int {
	for i < len(src) && strings.IndexByte(" \t\f", src[i]) >= 0 {
		i++
	}
	if i < len(src) && src[i] == '\r' {
		i++
	}
	if i < len(src) && src[i] == '\n' {
		i++
	}
	return i
}
