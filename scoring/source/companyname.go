package source

import (
	"html"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// legalEndings are legal forms at the end of a company's name, without dots.
var legalEndings = strings.Fields("ab ag aktiengesellschaft as asa aps bhd bv co company corp corporation doo gmbh group holding " +
	"holdings inc incorporated jsc kg kgaa kk limited llc llp lp ltd ltda " +
	"mbh nv ohg oy oyj plc pllc pte pty pvt sa sab sarl sas sasu se sl sp spa spzoo srl sro ug ulc zoo")

// PlainName normalises a company's name for comparison: NFKC, lower case, without punctuation,
// leading articles and legal forms at the end. It keeps at least one word; it is empty for a name
// without letters and digits. PlainName is idempotent.
func PlainName(name string) string {
	name = strings.ToValidUTF8(html.UnescapeString(name), "")
	name = strings.ReplaceAll(strings.ToLower(norm.NFKC.String(name)), "&", " and ")
	var b strings.Builder
	for _, r := range name {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			b.WriteRune(r)
		case r == '.' || r == '\'' || r == '’' || unicode.Is(unicode.Cf, r):
			// L.L.C. is one word, and so is Quill's.
		default:
			b.WriteByte(' ')
		}
	}
	words := strings.Fields(norm.NFKC.String(b.String()))
	for len(words) > 1 && (slices.Contains(legalEndings, words[len(words)-1]) || words[len(words)-1] == "and") {
		words = words[:len(words)-1]
	}
	for len(words) > 1 && words[0] == "the" {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

// words returns the number of words of a plain name.
func words(plain string) int { return strings.Count(plain, " ") + 1 }

// sameCompany reports whether two companies with equal plain names count as one: the name has at
// least two words, or the countries are equal.
func sameCompany(plain, country, other string) bool {
	return plain != "" && (words(plain) >= 2 || country != "" && country == other)
}
