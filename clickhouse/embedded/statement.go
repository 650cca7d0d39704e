package embedded

import "strings"

// maxQuery bounds the text of a statement in bytes, without the data of an INSERT. ClickHouse's own default is 256 KiB.
const maxQuery = 1 << 20

// statement is what has to be known of SQL text before the engine gets it. Everything else is the engine's business.
type statement struct {
	text   string // as written, up to the data of an INSERT or the closing semicolon
	verb   string // first keyword in upper case; INSERT also where WITH comes before it
	target string // second keyword in upper case, such as TABLE in DROP TABLE
	format string // name in the FORMAT clause of the statement, "" if it has none
	clause int    // offset in text where a clause about input or output file goes

	hasData bool // an INSERT whose data follow
	data    int  // offset of the data in the source
}

// selects reports whether the statement yields a result that may be large.
func (st statement) selects() bool {
	return st.verb == "SELECT" || st.verb == "WITH" || st.verb == "FROM"
}

// keepsSession reports whether the statement surely leaves the state of its connection as it was.
func (st statement) keepsSession() bool {
	switch st.verb {
	case "SELECT", "WITH", "FROM", "INSERT", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN":
		return true
	}
	return false
}

// parseStatement outlines the one statement in src, which may end anywhere in the data of an INSERT. Errors are for the client.
func parseStatement(src string) (statement, error) {
	lex := &lexer{src: src}
	tok := lex.next()
	for tok.isMark('(') {
		tok = lex.next()
	}
	st := statement{verb: strings.ToUpper(tok.text)}
	end, depth := len(src), 0
	if st.verb == "INSERT" {
		return parseInsert(src, st, lex)
	}
	for tok.kind != tokenEnd {
		next := lex.next()
		if st.target == "" {
			st.target = strings.ToUpper(next.text)
		}
		switch {
		case tok.isMark('(') || tok.isMark('[') || tok.isMark('{'):
			depth++
		case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
			depth--
		case tok.isMark(';') && next.isMark(';'):
			end = min(end, tok.pos)
		case tok.isMark(';') && next.kind != tokenEnd:
			return st, newException(codeSyntaxError, "Syntax error (Multi-statements are not allowed): failed at position %d", tok.pos+1)
		case tok.isMark(';'):
			end = min(end, tok.pos)
		case tok.is("INTO") && next.is("OUTFILE"):
			return st, newException(codeOutfile, "INTO OUTFILE is not allowed: the answer is the output")
		case st.verb == "WITH" && depth == 0 && tok.is("INSERT") && next.is("INTO"):
			st.verb = "INSERT"
		case depth == 0 && tok.is("FORMAT"):
			// A column may be called so as well, and then more than SETTINGS follows. A format may be quoted, as Null is by formatQuery.
			name, ok := next.identifier()
			if after := lex.peek(); ok && (after.kind == tokenEnd || after.isMark(';') || after.is("SETTINGS")) {
				st.format, st.clause = name, tok.pos
			}
		}
		tok = next
	}
	st.text = src[:end]
	if st.format == "" {
		st.clause = end
	}
	return st, nil
}

// parseInsert outlines INSERT INTO [TABLE] [FUNCTION] name ... (FORMAT name data | VALUES data | SELECT ...); INSERT has been read.
func parseInsert(src string, st statement, lex *lexer) (statement, error) {
	tok := lex.next()
	for tok.is("INTO") || tok.is("TABLE") || tok.is("FUNCTION") {
		tok = lex.next()
	}
	for lex.peek().isMark('.') { // tok is the name, which may read like a keyword
		lex.next()
		lex.next()
	}
	st.clause = -1
	mark := func(pos int) {
		if st.clause < 0 {
			st.clause = pos
		}
	}
	end, depth := len(src), 0
	for tok = lex.next(); tok.kind != tokenEnd; tok = lex.next() {
		switch {
		case tok.isMark('(') || tok.isMark('[') || tok.isMark('{'):
			depth++
		case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
			depth--
		case tok.isMark(';') && lex.peek().kind != tokenEnd && !lex.peek().isMark(';'):
			return st, newException(codeSyntaxError, "Syntax error (Multi-statements are not allowed): failed at position %d", tok.pos+1)
		case tok.isMark(';'):
			end = min(end, tok.pos)
		case tok.is("FROM") && lex.peek().is("INFILE"):
			return st, newException(codeNotImplemented, "INSERT FROM INFILE is not allowed: send the data with the request")
		case depth > 0:
		case tok.is("SETTINGS"):
			mark(tok.pos)
		case tok.is("SELECT") || tok.is("WITH") || tok.is("FROM"):
			rest, err := parseStatement(src[tok.pos:]) // for what may not be in any statement
			st.text = src[:tok.pos] + rest.text
			st.clause = len(st.text)
			return st, err
		case tok.is("VALUES"):
			mark(tok.pos)
			st.text, st.format = src[:tok.pos]+"FORMAT Values", "Values"
			st.hasData, st.data = true, tok.pos+len(tok.text)
			return st, nil
		case tok.is("FORMAT"):
			mark(tok.pos)
			name := lex.next()
			end := name.pos + len(name.text)
			st.text, st.format = src[:end], name.text
			st.hasData, st.data = true, dataStart(src, end)
			return st, nil
		}
	}
	st.text = src[:end]
	mark(end)
	return st, nil
}

// dataStart passes over the blanks behind the format name and one line end, as ClickHouse does.
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

// withoutSync takes the word SYNC, or NO DELAY, off the end of a DROP. The library never runs the task that such a DROP would wait for;
// the table is gone at once all the same, and its files are with the next start.
func withoutSync(text string) string {
	var last [3]token
	for lex := (&lexer{src: text}); ; {
		tok := lex.next()
		if tok.kind == tokenEnd {
			break
		}
		last[0], last[1], last[2] = last[1], last[2], tok
	}
	isName := last[1].isMark('.')
	for _, word := range []string{"TABLE", "DATABASE", "VIEW", "DICTIONARY", "FUNCTION", "EXISTS", "TEMPORARY"} {
		isName = isName || last[1].is(word)
	}
	switch {
	case last[2].is("SYNC") && !isName:
		return text[:last[2].pos]
	case last[1].is("NO") && last[2].is("DELAY"):
		return text[:last[1].pos]
	}
	return text
}
