package embedded

import (
	"slices"
	"strings"
)

// maxQuery is the maximum size of a statement in bytes, without the data of an INSERT. ClickHouse's default is 256 KiB.
const maxQuery = 1 << 20

// statement is the outline of an SQL statement. The engine parses the rest.
type statement struct {
	lexed         // up to the data of an INSERT or the closing semicolon; an INSERT has no tokens unless it follows a WITH clause
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
func parseStatement(src string) (statement, error) {
	l := &lexer{src: src}
	tok := l.next()
	for tok.isMark('(') {
		tok = l.next()
	}
	if tok.is("INSERT") { // its data are no SQL
		return parseInsert(src, l)
	}
	return outline(lex(src), token.is)
}

// outlineFormatted is outline for a text that the engine has formatted: its keywords are in upper case, so that others are names.
func outlineFormatted(l lexed) (statement, error) { return outline(l, token.isBare) }

// outline returns the outline of the only statement in l. is compares a token with the keyword FORMAT. The error is an *exception.
func outline(l lexed, is func(t token, keyword string) bool) (statement, error) {
	rest, end, depth := l.tokens, len(l.text), 0
	tok := rest.next()
	for ; tok.isMark('('); tok = rest.next() {
		depth++
	}
	st := statement{verb: strings.ToUpper(tok.text)}
	for tok.kind != tokenEnd {
		next := rest.next()
		if st.target == "" {
			st.target = strings.ToUpper(next.text)
		}
		switch {
		case tok.isMark('(') || tok.isMark('[') || tok.isMark('{'):
			depth++
		case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
			depth--
		case tok.isMark(';') && next.kind != tokenEnd && !next.isMark(';'):
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
			if after := rest.peek(); ok && (after.kind == tokenEnd || after.isMark(';') || after.is("SETTINGS")) {
				st.format, st.clause = name, tok.pos
			}
		}
		tok = next
	}
	if l.unclosed > unclosedMax {
		return st, newException(codeSyntaxError, "Syntax error: more than %d tags such as $a$ are not closed", unclosedMax)
	}
	if end < len(l.text) {
		l.text, l.tokens = l.text[:end], append(slices.Clone(l.before(end)), token{tokenEnd, "", end})
	}
	st.lexed = l
	if st.format == "" {
		st.clause = end
	}
	return st, nil
}

// parseInsert parses INSERT INTO [TABLE] [FUNCTION] name ... (FORMAT name data | VALUES data | SELECT ...). l is behind INSERT.
func parseInsert(src string, l *lexer) (statement, error) {
	st := statement{verb: "INSERT", clause: -1}
	tok := l.next()
	for tok.is("INTO") || tok.is("TABLE") || tok.is("FUNCTION") {
		tok = l.next()
	}
	for l.peek().isMark('.') { // tok is the name, which may equal a keyword
		l.next()
		l.next()
	}
	mark := func(pos int) {
		if st.clause < 0 {
			st.clause = pos
		}
	}
	end, depth := len(src), 0
	for tok = l.next(); tok.kind != tokenEnd; tok = l.next() {
		switch {
		case tok.isMark('(') || tok.isMark('[') || tok.isMark('{'):
			depth++
		case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
			depth--
		case tok.isMark(';') && l.peek().kind != tokenEnd && !l.peek().isMark(';'):
			return st, newException(codeSyntaxError, "Syntax error (Multi-statements are not allowed): failed at position %d", tok.pos+1)
		case tok.isMark(';'):
			end = min(end, tok.pos)
		case tok.is("FROM") && l.peek().is("INFILE"):
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
			name := l.next()
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

// withoutSync returns the text of a DROP without SYNC or NO DELAY at its end. The library never runs the task that such a DROP waits for.
// The table is dropped at once; the next start removes its files.
func (st statement) withoutSync() string {
	var last [3]token
	all := st.before(len(st.text))
	copy(last[max(0, len(last)-len(all)):], all[max(0, len(all)-len(last)):])
	isName := last[1].isMark('.')
	for _, word := range []string{"TABLE", "DATABASE", "VIEW", "DICTIONARY", "FUNCTION", "EXISTS", "TEMPORARY"} {
		isName = isName || last[1].is(word)
	}
	switch {
	case last[2].is("SYNC") && !isName:
		return st.text[:last[2].pos]
	case last[1].is("NO") && last[2].is("DELAY"):
		return st.text[:last[1].pos]
	}
	return st.text
}
