package scoring

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// nameLimit is the length of the longest company name, in runes.
const nameLimit = 120

// CleanName makes a name found on a page or in a register fit to show: HTML
// entities are resolved, control and invisible format characters dropped, runs
// of spaces joined, and what exceeds 120 runes cut off. The result may be empty.
// It does not change the Unicode normal form.
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

// joiner reports whether r shapes letters in Persian and Indian names, unlike
// the format characters that reorder or hide text.
func joiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

// companyName is the found name, cleaned, or else the domain's own label with a
// capital. A label in punycode is no name: then it is the whole domain.
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

// secondLevels are the labels under which countries register companies, as in
// example.co.uk.
var secondLevels = strings.Fields("ac co com edu gob gouv gov go ne net nom or org")

// ownLabel is the label that the owner of the domain chose: the one before the
// public suffix, as far as that can be told without the list of them.
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
