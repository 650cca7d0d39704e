package embedded

import "strings"

// maxQuery is the maximum size of a statement in bytes, without the data of an INSERT. ClickHouse's default is 256 KiB.
const maxQuery = 1 << 20

// statement is the outline of an SQL statement. The engine parses the rest.
type statement struct {
	text   string // source text up to the data of an INSERT or the closing semicolon
	verb   string // first keyword in upper case; INSERT also after a WITH clause
	target string // second keyword in upper case, such as TABLE in DROP TABLE
	format string // name in the FORMAT clause of the statement, "" if it has none
	clause int    // offset in text for an INFILE or OUTFILE clause

	hasData bool // the source has data of an INSERT after the statement
	data    int  // offset of the data in the source
}

// selects reports whether the statement is a query, whose result may be large.
func (st statement) selects() bool {
	return st.verb == "SELECT" || st.verb == "WITH" || st.verb == "FROM"
}

// keepsSession reports whether the statement cannot change the state of its connection.
func (st statement) keepsSession() bool {
	switch st.verb {
	case "SELECT", "WITH", "FROM", "INSERT", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN":
		return true
	}
	return false
}

// parseStatement parses the only statement in src. src may end within the data of an INSERT. The error is an *exception.
func parseStatement(src string) (statement, error) { return parse(src, token.is) }

// parseFormatted is parseStatement for a text that the engine has formatted: its keywords are in upper case, so that others are names.
func parseFormatted(src string) (statement, error) { return parse(src, token.isBare) }

// parse parses the only statement in src. is compares a token with the keyword FORMAT.
func parse(src string, is func(t token, keyword string) bool) (statement, error) {
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
		case depth == 0 && is(tok, "FORMAT"):
			// FORMAT may also be a column name; then other tokens follow. formatQuery quotes some format names, such as Null.
			name, ok := next.identifier()
			if after := lex.peek(); ok && (after.kind == tokenEnd || after.isMark(';') || after.is("SETTINGS")) {
				st.format, st.clause = name, tok.pos
			}
		}
		tok = next
	}
	if lex.unclosed > unclosedMax {
		return st, newException(codeSyntaxError, "Syntax error: more than %d tags such as $a$ are not closed", unclosedMax)
	}
	st.text = src[:end]
	if st.format == "" {
		st.clause = end
	}
	return st, nil
}

// parseInsert parses INSERT INTO [TABLE] [FUNCTION] name ... (FORMAT name data | VALUES data | SELECT ...). lex is behind INSERT.
func parseInsert(src string, st statement, lex *lexer) (statement, error) {
	tok := lex.next()
	for tok.is("INTO") || tok.is("TABLE") || tok.is("FUNCTION") {
		tok = lex.next()
	}
	for lex.peek().isMark('.') { // tok is the name, which may equal a keyword
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
			rest, err := parseStatement(src[tok.pos:]) // rejects clauses that no statement may have
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

// dataStart returns the offset behind the blanks that follow the format name and one line end, like ClickHouse.
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

// withoutSync removes SYNC or NO DELAY from the end of a DROP. The library never runs the task that such a DROP waits for. The table is
// dropped at once; the next start removes its files.
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
