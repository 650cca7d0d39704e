package embedded

import (
	"slices"
	"strings"
	"testing"
)

func TestStatementsAreOutlined(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src                  string
		verb, format, text   string
		hasData, keeps, errs bool
	}{
		{src: "SELECT 1", verb: "SELECT", text: "SELECT 1", keeps: true},
		{src: " /* a */ select 1 ; ", verb: "SELECT", text: " /* a */ select 1 ", keeps: true},
		{src: "SELECT ';' FORMAT CSV", verb: "SELECT", format: "CSV", text: "SELECT ';' FORMAT CSV", keeps: true},
		{src: "SELECT 1 FORMAT `Null`", verb: "SELECT", format: "Null", text: "SELECT 1 FORMAT `Null`", keeps: true},
		{src: "SELECT format FROM t", verb: "SELECT", text: "SELECT format FROM t", keeps: true},
		{src: "SELECT $a$ ; FORMAT CSV $a$", verb: "SELECT", text: "SELECT $a$ ; FORMAT CSV $a$", keeps: true},
		{src: "(SELECT 1) FORMAT CSV", verb: "SELECT", format: "CSV", text: "(SELECT 1) FORMAT CSV", keeps: true},
		{src: "SELECT 1; SELECT 2", errs: true},
		{src: "SELECT 1 INTO OUTFILE 'x'", errs: true},
		{src: "SELECT 1 INTO/**/OUTFILE 'x'", errs: true},
		{src: "INSERT INTO t FROM INFILE 'x' FORMAT CSV", errs: true},
		{src: "INSERT INTO t SELECT 1 INTO OUTFILE 'x'", errs: true},
		{src: "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", verb: "INSERT",
			text: "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", keeps: true},
		{src: "INSERT INTO t VALUES (1), (2)", verb: "INSERT", format: "Values", text: "INSERT INTO t FORMAT Values", hasData: true,
			keeps: true},
		{src: "INSERT INTO t FORMAT Native\n\x00\x01", verb: "INSERT", format: "Native", text: "INSERT INTO t FORMAT Native", hasData: true,
			keeps: true},
		{src: "SET max_threads = 1", verb: "SET", text: "SET max_threads = 1"},
		{src: "USE x", verb: "USE", text: "USE x"},
	} {
		st, err := parseStatement(c.src)
		if (err != nil) != c.errs {
			t.Errorf("%q: %v", c.src, err)
			continue
		}
		if c.errs {
			continue
		}
		if st.verb != c.verb || st.format != c.format || st.text != c.text || st.hasData != c.hasData || st.keepsSession() != c.keeps {
			t.Errorf("%q: %+v", c.src, st)
		}
	}
}

func TestDropsDoNotWait(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"DROP TABLE a SYNC": "DROP TABLE a ", "DROP DATABASE a NO DELAY": "DROP DATABASE a ",
		"drop table if exists a.b sync": "drop table if exists a.b ",
		"DROP TABLE sync":               "DROP TABLE sync", "DROP TABLE a.sync": "DROP TABLE a.sync",
		"DROP TABLE IF EXISTS sync": "DROP TABLE IF EXISTS sync", "DROP TABLE a": "DROP TABLE a",
	} {
		if st, err := parseStatement(text); err != nil || st.withoutSync() != want {
			t.Errorf("%q became %q, %v; want %q", text, st.withoutSync(), err, want)
		}
	}
}

// bound has parameters for the tests of replaced tokens.
var bound = []param{{"a", "x"}, {"b", "d.t"}, {"c", "`'$y$ -- /*"}}

func TestReplacedTokensStayApart(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"SELECT {a:Identifier}, 1":                 "SELECT `x`, 1",
		"SELECT {a:Identifier}FROM {b:Identifier}": "SELECT `x` FROM `d`.`t`",
		"SELECT `q`{a:Identifier}`r`":              "SELECT `q` `x` `r`",
		"SELECT u.{a:Identifier}.v":                "SELECT u.`x`.v",
		"{a:Identifier}{a:Identifier}":             "`x` `x`",
		"SELECT {c:Identifier}, '{a:Identifier}'":  "SELECT `\\`'$y$ -- /*`, '{a:Identifier}'",
		"SELECT {a:String}":                        "SELECT {a:String}",
	} {
		l, err := bindIdentifiers(lex(src), bound)
		if err != nil || l.text != want {
			t.Errorf("%q became %q, %v; want %q", src, l.text, err, want)
		}
		if again := lex(l.text); !slices.Equal(l.tokens, again.tokens) || l.comments || l.unclosed != 0 {
			t.Errorf("%q: %+v; the text reads as %+v", l.text, l, again)
		}
	}
}

// FuzzStatement checks that a statement is outlined without a panic, that its
// clauses of settings and its tokens lie in it one behind the other, that
// nothing but blanks and comments lies between tokens, and that a text with
// replaced tokens reads as these tokens.
func FuzzStatement(f *testing.F) {
	for _, src := range []string{
		"SELECT 1 FORMAT CSV", "INSERT INTO `a`.\"b\" (c) SETTINGS d = 1 VALUES (1)", "-- x\nSELECT '\\'' /* ' */ # y\n, $a$;$a$",
		"WITH a AS (SELECT 1) INSERT INTO t SELECT",
		"SELECT ‘a’, “b”", "DROP TABLE a SYNC", "INSERT INTO t FORMAT", "SELECT '", "/*", "$", "\xff",
		"INSERT INTO FUNCTION file('x') VALUES",
		"SELECT 1 SETTINGS a = 'x''\\'', `b` = -1.5 /* c */ FORMAT CSV SETTINGS d = true",
		"SELECT (SELECT 1 SETTINGS a = 1) SETTINGS b = DEFAULT", "SELECT 1 SETTINGS a = 1.",
		"SELECT a{a:Identifier}b, `c`{c:Identifier}'d' FROM e.{b:Identifier}.f, #{a:Identifier} -{a:Identifier}-- {a:Identifier}",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		st, err := parseStatement(src)
		if err == nil && (st.clause < 0 || st.clause > len(st.text) || st.hasData && (st.data < 0 || st.data > len(src))) {
			t.Fatalf("%q: offsets of %+v", src, st)
		}
		st.withoutSync()
		all, passed := lex(src), 0
		for _, clause := range settingsClauses(all.tokens) {
			if clause.from < passed || clause.to < clause.from || clause.to > len(src) || len(clause.settings) == 0 {
				t.Fatalf("%q: clause %+v after %d", src, clause, passed)
			}
			passed = clause.to
		}
		end := 0
		for _, tok := range all.tokens[:len(all.tokens)-1] {
			if tok.text == "" || tok.pos < end || src[tok.pos:tok.pos+len(tok.text)] != tok.text {
				t.Fatalf("%q: token %+v after %d", src, tok, end)
			}
			if between := strings.TrimLeft(src[end:tok.pos], " \t\n\r\f\v"); between != "" && !strings.HasPrefix(between, "--") &&
				!strings.HasPrefix(between, "#") && !strings.HasPrefix(between, "/*") {
				t.Fatalf("%q: %q was passed over", src, between)
			}
			end = tok.end()
		}
		edited, err := bindIdentifiers(all, bound)
		if again := lex(edited.text); err == nil && edited.unclosed == 0 && !slices.Equal(edited.tokens, again.tokens) {
			t.Fatalf("%q became %q with %+v, which reads as %+v", src, edited.text, edited.tokens, again.tokens)
		}
	})
}
