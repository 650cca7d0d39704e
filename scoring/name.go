package scoring

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// nameLimit is the most runes of a company name.
const nameLimit = 120

// CleanName prepares a name from a page or a register for display: it decodes HTML entities,
// removes control and invisible format characters, replaces runs of spaces by one, and truncates
// to 120 runes. The result can be empty. It does not change the Unicode normal form.
func CleanName(name string) string {
	name = strings.ToValidUTF8(html.UnescapeString(name), "")
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) && !joiner(r) {
			return -1
		}
		return r
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	if runes := []rune(name); len(runes) > nameLimit {
		name = string(runes[:nameLimit])
	}
	return strings.TrimSpace(name)
}

// joiner reports whether r is a zero-width joiner or non-joiner, which Persian and Indian names
// need.
func joiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

// companyName returns the cleaned name, or the domain's own label with a capital, or the domain
// if that label is in punycode.
func companyName(found, domain string) string {
	if name := CleanName(found); name != "" {
		return name
	}
	label := ownLabel(domain)
	if label == "" || strings.HasPrefix(label, "xn--") {
		return domain
	}
	first, size := utf8.DecodeRuneInString(label)
	return string(unicode.ToUpper(first)) + label[size:]
}

// secondLevels are labels under which countries register companies, as in example.co.uk.
var secondLevels = strings.Fields("ac co com edu gob gouv gov go ne net nom or org")

// ownLabel returns the label before the public suffix. It guesses the suffix without the public
// suffix list.
func ownLabel(domain string) string {
	labels := strings.Split(domain, ".")
	n := len(labels)
	switch {
	case n >= 3 && len(labels[n-1]) == 2 && slices.Contains(secondLevels, labels[n-2]):
		return labels[n-3]
	case n >= 2:
		return labels[n-2]
	}
	return labels[0]
}
