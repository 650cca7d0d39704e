package embedded

import (
	"slices"
	"strings"
)

// token is one lexical element of a statement. text is the source text with quotes.
type token struct {
	kind tokenKind
	text string
	pos  int // byte offset of the first byte
}

// end returns the byte offset behind t.
func (t token) end() int { return t.pos + len(t.text) }

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // keyword, bare identifier or number
	tokenQuoted           // string, quoted identifier or heredoc
	tokenMark             // any other single byte
)

// is reports whether t is the keyword word, which must be upper case.
func (t token) is(word string) bool { return t.kind == tokenWord && strings.EqualFold(t.text, word) }

// isBare reports whether t is the keyword word as the engine formats it, in upper case.
func (t token) isBare(word string) bool { return t.kind == tokenWord && t.text == word }

// isNumber reports whether t begins with a digit.
func (t token) isNumber() bool { return t.kind == tokenWord && '0' <= t.text[0] && t.text[0] <= '9' }

// literal returns the text of a string. ok is false if t is none.
func (t token) literal() (text string, ok bool) {
	if t.kind != tokenQuoted || len(t.text) < 2 || t.text[0] != '\'' || t.text[len(t.text)-1] != '\'' {
		return "", false
	}
	return stringUnquoter.Replace(t.text[1 : len(t.text)-1]), true
}

var stringUnquoter = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `''`, `'`, `\t`, "\t", `\n`, "\n", `\r`, "\r", `\0`, "\x00")

func (t token) isMark(c byte) bool { return t.kind == tokenMark && t.text[0] == c }

// identifier returns the unquoted name. ok is false if the token cannot be an identifier.
func (t token) identifier() (name string, ok bool) {
	switch {
	case t.kind == tokenWord:
		return t.text, true
	case t.kind != tokenQuoted || len(t.text) < 2:
		return "", false
	case t.text[0] == '`' || t.text[0] == '"':
		return identifierUnquoter.Replace(t.text[1 : len(t.text)-1]), true
	}
	return "", false
}

// tokens are tokens in the order of their text. Reading shortens the slice, so a copy of it looks ahead.
type tokens []token

// next removes and returns the first token. At the end it returns a token of kind tokenEnd, again and again.
func (ts *tokens) next() token {
	tok := ts.peek()
	if tok.kind != tokenEnd {
		*ts = (*ts)[1:]
	}
	return tok
}

// peek returns the first token.
func (ts tokens) peek() token {
	if len(ts) == 0 {
		return token{}
	}
	return ts[0]
}

// callsWithout reports whether the next tokens are (), the brackets of a call without arguments.
func (ts tokens) callsWithout() bool { return ts.next().isMark('(') && ts.next().isMark(')') }

// isColumnList reports whether a name, between prev and the bracket that comes next, is an alias with a list of its columns: AS name(a, b)
// or WITH name(a, b) AS (SELECT ...).
func (ts tokens) isColumnList(prev token) bool {
	if !prev.isBare("AS") && !prev.isBare("WITH") && !prev.isBare("RECURSIVE") && !prev.isMark(',') {
		return false
	}
	ts.next()
	for {
		if _, ok := ts.next().identifier(); !ok {
			return false
		}
		if end := ts.next(); end.isMark(')') {
			return prev.isBare("AS") || ts.next().isBare("AS") && ts.next().isMark('(')
		} else if !end.isMark(',') {
			return false
		}
	}
}

// lexed is a text and its tokens.
type lexed struct {
	text     string
	tokens   tokens // the last one is of kind tokenEnd
	comments bool   // whether there are comments
	unclosed int    // tags such as $a$ that are not closed; if there are more than unclosedMax, the tokens end there
}

// lex splits a text into tokens.
func lex(text string) lexed {
	l := &lexer{src: text}
	out := lexed{text: text, tokens: make(tokens, 0, min(len(text)/4, 1024)+1)}
	for {
		tok := l.next()
		out.tokens = append(out.tokens, tok)
		if tok.kind == tokenEnd {
			out.comments, out.unclosed = l.comments, l.unclosed
			return out
		}
	}
}

// before returns the tokens that begin before an offset.
func (l lexed) before(offset int) tokens {
	n, _ := slices.BinarySearchFunc(l.tokens, offset, func(t token, offset int) int { return t.pos - offset })
	return l.tokens[:n]
}

// edit replaces the bytes of a text between two offsets. Each offset is outside of tokens.
type edit struct {
	from, to int
	text     string
}

// with returns l after edits that do not overlap. It lexes only their texts. Where a new text would become one token with its neighbour, a
// blank separates them.
func (l lexed) with(edits []edit) lexed {
	if len(edits) == 0 {
		return l
	}
	var text strings.Builder
	out := lexed{comments: l.comments, unclosed: l.unclosed, tokens: make(tokens, 0, len(l.tokens)+16*len(edits))}
	add := func(part lexed, from int) { // from is the offset that the first byte of the part has in the positions of its tokens
		if n := len(out.tokens); n > 0 && len(part.tokens) > 0 {
			last, first := out.tokens[n-1], part.tokens[0]
			if last.end() == text.Len() && first.pos == from && last.kind != tokenMark && first.kind != tokenMark {
				text.WriteByte(' ')
			}
		}
		for _, tok := range part.tokens {
			tok.pos += text.Len() - from
			out.tokens = append(out.tokens, tok)
		}
		text.WriteString(part.text)
	}
	kept := 0 // bytes of l that were added or replaced
	keep := func(to int) {
		add(lexed{text: l.text[kept:to], tokens: l.before(to)[len(l.before(kept)):]}, kept)
	}
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	for _, e := range edits {
		keep(e.from)
		part := lex(e.text)
		out.comments, out.unclosed = out.comments || part.comments, out.unclosed+part.unclosed
		part.tokens = part.before(len(e.text))
		add(part, 0)
		kept = e.to
	}
	keep(len(l.text))
	out.text = text.String()
	out.tokens = append(out.tokens, token{tokenEnd, "", len(out.text)})
	return out
}

// lexer splits SQL into tokens like ClickHouse, as far as needed to find the ends of strings, comments and brackets.
type lexer struct {
	src      string
	pos      int
	comments bool // whether a comment was skipped
	unclosed int  // tags such as $a$ that are not closed; more than unclosedMax end the text
}

// peek returns the next token without consuming it.
func (l *lexer) peek() token {
	ahead := *l
	return ahead.next()
}

// next consumes and returns the next token. It skips blanks and comments.
func (l *lexer) next() token {
	l.skip()
	start := l.pos
	if start >= len(l.src) {
		return token{tokenEnd, "", len(l.src)}
	}
	rest := l.src[start:]
	switch c := rest[0]; {
	case c == '\'' || c == '"' || c == '`':
		l.pos += quotedLen(rest)
		return token{tokenQuoted, l.src[start:l.pos], start}
	case c == '$':
		n, isTag := heredocLen(rest)
		if n > 0 {
			l.pos += n
			return token{tokenQuoted, l.src[start:l.pos], start}
		}
		if isTag {
			l.unclosed++
		}
		if l.unclosed > unclosedMax {
			l.pos = len(l.src)
			return token{tokenEnd, "", len(l.src)}
		}
		fallthrough
	case isWordByte(c):
		n := 1
		for n < len(rest) && (isWordByte(rest[n]) || rest[n] == '$') {
			n++
		}
		l.pos += n
		return token{tokenWord, l.src[start:l.pos], start}
	case strings.HasPrefix(rest, "‘"):
		return l.curly(rest, "’")
	case strings.HasPrefix(rest, "“"):
		return l.curly(rest, "”")
	default:
		l.pos++
		return token{tokenMark, l.src[start:l.pos], start}
	}
}

// curly reads a string or identifier in typographic quotes. These have no escapes.
func (l *lexer) curly(rest, end string) token {
	start := l.pos
	if i := strings.Index(rest, end); i >= 0 {
		l.pos += i + len(end)
	} else {
		l.pos = len(l.src)
	}
	return token{tokenQuoted, l.src[start:l.pos], start}
}

// skip skips blanks and comments.
func (l *lexer) skip() {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case strings.IndexByte(" \t\n\r\f\v", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "# "), strings.HasPrefix(rest, "#!"):
			l.comments = true
			l.skipTo("\n")
		case strings.HasPrefix(rest, "/*"):
			l.comments = true
			l.skipNested()
		default:
			return
		}
	}
}

// skipNested skips a comment with the comments in it.
func (l *lexer) skipNested() {
	for depth := 0; ; {
		rest := l.src[l.pos:]
		opens, ends := strings.Index(rest, "/*"), strings.Index(rest, "*/")
		switch {
		case ends < 0:
			l.pos = len(l.src)
			return
		case opens >= 0 && opens < ends:
			depth++
			l.pos += opens + 2
		default:
			l.pos += ends + 2
			if depth--; depth == 0 {
				return
			}
		}
	}
}

func (l *lexer) skipTo(end string) {
	if i := strings.Index(l.src[l.pos:], end); i >= 0 {
		l.pos += i + len(end)
	} else {
		l.pos = len(l.src)
	}
}

// quotedLen returns the length of the quoted text at the start of s. A backslash or a doubled quote is an escape.
func quotedLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			if i+1 < len(s) && s[i+1] == s[0] {
				i++
				continue
			}
			return i + 1
		}
	}
	return len(s)
}

// unclosedMax is the maximum number of tags that are not closed. Each one is searched for in the rest of the text, also by the engine.
const unclosedMax = 100

// heredocLen returns the length of the $tag$...$tag$ at the start of s, 0 if there is none. isTag is whether s begins with a tag.
func heredocLen(s string) (length int, isTag bool) {
	n := 1
	for n < len(s) && isWordByte(s[n]) {
		n++
	}
	if n == len(s) || s[n] != '$' {
		return 0, false
	}
	tag := s[:n+1]
	if i := strings.Index(s[len(tag):], tag); i >= 0 {
		return len(tag) + i + len(tag), true
	}
	return 0, true
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

var identifierUnquoter = strings.NewReplacer("\\`", "`", "\\\"", "\"", "\\\\", "\\", "``", "`", "\"\"", "\"")
