package embedded

import (
	"slices"
	"strings"
)

// bracket is an open bracket of a statement.
type bracket struct {
	function  string // whose arguments are in it, "" for none
	signature signature
	argument  int // index of the current argument
	tokens    int // of the current argument
	first     token
}

// beforeBracket lists the keywords that may precede a bracket in a formatted statement.
var beforeBracket = []string{
	"ALL", "AND", "ANY", "APPLY", "AS", "BY", "COLUMNS", "CUBE", "DESCRIBE", "DISTINCT", "EXCEPT", "EXISTS", "EXPLAIN", "FROM",
	"GLOBAL", "HAVING", "ILIKE", "IN", "INTERPOLATE", "INTERSECT", "JOIN", "LIKE", "LIMIT", "NOT", "OFFSET", "ON", "OR", "OVER",
	"PREWHERE", "QUALIFY", "REPLACE", "ROLLUP", "SELECT", "SETS", "STEP", "SYNTAX", "TABLE", "TO", "TREE", "UNION", "USING", "WHERE",
	"WITH",
}

// argument counts a token as part of the innermost bracket, and checks the argument that ends with it.
func (in *inspection) argument(tok token) error {
	inner := &in.open[len(in.open)-1]
	if (tok.isMark(',') || tok.isMark(')')) && inner.function != "" {
		if err := in.endArgument(*inner, tok.isMark(')')); err != nil {
			return err
		}
	}
	switch {
	case tok.isMark(','):
		inner.argument, inner.tokens = inner.argument+1, 0
	case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
		if in.open = in.open[:len(in.open)-1]; len(in.open) == 0 {
			return in.uncertain()
		}
	default:
		if inner.tokens++; inner.tokens == 1 {
			inner.first = tok
		}
		if inner.signature.reads() && (tok.isMark('*') && (inner.tokens == 1 || in.prev.isMark('.')) || tok.is("COLUMNS")) {
			return in.denied("%s takes single arguments here, not all columns", inner.function)
		}
	}
	return nil
}

// apply checks the function after APPLY: its name, or a lambda, perhaps in brackets.
func (in *inspection) apply() error {
	ahead := in.rest
	for ahead.peek().isMark('(') {
		ahead.next()
	}
	function, ok := ahead.next().identifier()
	if !ok || ahead.peek().isMark('-') {
		return nil
	}
	_, err := in.call(function)
	return err
}

// call returns the signature of the function or table function that a statement calls by name.
func (g *analystGuard) call(name string) (signature, error) {
	if s, ok := g.allowed.function(name); ok {
		return s, nil
	}
	switch folded := strings.ToLower(name); {
	case g.allowed.tableFunctions[folded]:
		return signature{}, nil
	case g.allowed.otherFunctions[folded], g.allowed.otherTableFunctions[folded]:
		return signature{}, g.denied("Function %s is not open to analysts; the documentation has a list of those that are", quoteName(name))
	}
	return signature{}, newException(codeUnknownFunction, "Function with name %s does not exist", quoteName(name))
}

// isFunction reports whether the engine has a function of this name, in lower case.
func (g *analystGuard) isFunction(name string) bool {
	_, allowed := g.allowed.functions[name]
	return allowed || g.allowed.otherFunctions[name]
}

// takesFunction reports whether the innermost bracket, perhaps within others without a name, has arguments of a function that takes
// lambdas. The engine accepts the name of a function in the place of a lambda.
func takesFunction(open []bracket) bool {
	for _, b := range slices.Backward(open) {
		if b.function != "" {
			name := strings.ToLower(b.function)
			return strings.HasPrefix(name, "array") || strings.HasPrefix(name, "map")
		}
	}
	return false
}

// endArgument checks the argument of b that has ended. last is whether it is the last one.
func (g *analystGuard) endArgument(b bracket, last bool) error {
	kind := b.signature.at(b.argument, last)
	if b.tokens == 0 || kind == anyArgument {
		return nil
	}
	text, literal := b.first.literal()
	switch {
	case b.tokens > 1:
		literal = false
	case kind == zoneArgument && b.first.isNumber(): // a number is never the name of a zone
		return nil
	}
	if kind == typeArgument {
		if !literal {
			return g.denied("%s takes a data type as plain text here", b.function)
		}
		return g.checkType(lex(text))
	}
	if !literal || !g.allowed.zones[text] {
		return g.denied("%s takes a time zone as plain text here, such as 'UTC' or 'Europe/Paris'; "+
			"the documentation has a list of those that are open to analysts", b.function)
	}
	return nil
}

// checkType checks a data type.
func (g *analystGuard) checkType(kind lexed) error {
	uncertain := func() error {
		return g.denied("The data type %s cannot be read with certainty", quoteString(kind.text))
	}
	if kind.comments || kind.unclosed > 0 {
		return uncertain()
	}
	open, name := []string{""}, "" // types whose brackets are open, innermost last, and the last word
	rest := kind.tokens
	for tok := rest.next(); tok.kind != tokenEnd; tok = rest.next() {
		word, isName := tok.identifier()
		zone, isText := tok.literal()
		switch folded := strings.ToLower(word); {
		case tok.kind == tokenQuoted && !isName && !isText: // other forms of texts
			return uncertain()
		case isName && (g.allowed.otherTypes[folded] || rest.peek().isMark('(') && !g.allowed.types[folded]):
			return g.denied("Data type %s is not open to analysts", quoteName(word))
		case isName:
			name = folded
		case tok.isMark('('):
			open, name = append(open, name), ""
		case tok.isMark(')') && len(open) > 1:
			open = open[:len(open)-1]
		case isText && !strings.HasPrefix(open[len(open)-1], "enum") && !g.allowed.zones[zone]: // only enumerations and times have texts
			return g.denied("Time zone %s is not open to analysts; the documentation has a list of those that are", quoteString(zone))
		}
	}
	return nil
}
