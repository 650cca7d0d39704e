package source

import (
	"html"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// legalEndings are words at the end of a company's name that say what kind of a
// company it is, without their dots.
var legalEndings = strings.Fields("ab ag aktiengesellschaft as asa aps bhd bv co company corp corporation doo gmbh group holding holdings inc incorporated jsc kg kgaa kk limited llc llp lp ltd ltda " +
	"mbh nv ohg oy oyj plc pllc pte pty pvt sa sab sarl sas sasu se sl sp spa spzoo srl sro ug ulc zoo")

// PlainName is the form of a company's name in which names are compared: compatible
// characters made equal, lower case, no punctuation, and no words at the end that
// say the kind of company. A name of such words alone keeps the first. It may be
// empty. PlainName(PlainName(x)) equals PlainName(x).
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

// words counts the words of a plain name.
func words(plain string) int { return strings.Count(plain, " ") + 1 }

// sameCompany reports whether two companies of equal names may be taken for one:
// the name has two words at least, or the countries agree.
func sameCompany(plain, country, other string) bool {
	return plain != "" && (words(plain) >= 2 || country != "" && country == other)
}
