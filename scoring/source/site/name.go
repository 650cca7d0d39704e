package site

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// Names are what a company is likely called, after its host: letters and digits in lower case.
type Names []string

// NamesOf returns the names after a host, and after other texts, such as the name of the site.
func NamesOf(host string, texts ...string) Names {
	var names Names
	host = strings.ToLower(host)
	own := Registrable(host)
	suffix, _ := publicsuffix.PublicSuffix(host)
	label := strings.TrimSuffix(own, "."+suffix)
	if decoded, err := idna.ToUnicode(label); err == nil {
		label = decoded
	}
	names.add(label)
	names.add(label + suffix) // Example.com is a name as well
	for sub := range strings.SplitSeq(strings.TrimSuffix(host, own), ".") {
		if len(sub) > 3 && !strings.HasPrefix(sub, "www") {
			names.add(sub)
		}
	}
	for _, text := range texts {
		names.add(text)
	}
	return names
}

func (n *Names) add(text string) {
	if plain := plainName(fold(text)); utf8.RuneCountInString(plain) > 1 {
		*n = append(*n, plain)
	}
}

// plainName removes what is neither a letter nor a digit.
func plainName(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// nameWordsMax is the most words of a text that is compared as a name.
const nameWordsMax = 6

// Similarity returns how much a text resembles one of the names, between 0 and 1: the share of the
// longer one that both have in common. 1 is an equal name. Initials that are a name count as well.
func (n Names) Similarity(text string) float64 {
	words := strings.Fields(text)
	if len(words) > nameWordsMax {
		return 0
	}
	var initials strings.Builder
	for _, word := range words {
		if r, _ := utf8.DecodeRuneInString(fold(word)); unicode.IsLetter(r) {
			initials.WriteRune(r)
		}
	}
	if len(words) > 1 && slices.Contains(n, initials.String()) {
		return max(initialsSimilarity, n.similarity(text))
	}
	return n.similarity(text)
}

// initialsSimilarity is the similarity of words whose initials are the name.
const initialsSimilarity = 0.8

// similarity is Similarity without initials.
func (n Names) similarity(text string) (best float64) {
	for _, plain := range []string{plainName(fold(text)), plainName(fold(umlauts.Replace(strings.ToLower(text))))} {
		for _, name := range n {
			best = max(best, common(plain, name))
		}
	}
	return best
}

// commonMin is the length of the shortest common part of two names that are not equal.
const commonMin = 3

func common(a, b string) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	switch {
	case a == b && a != "":
		return 1
	case len(a) < commonMin || !strings.Contains(b, a):
		return 0
	}
	return float64(len(a)) / float64(len(b))
}

// Bounds of similarity: of a part of a title as a whole, and of words within a longer one.
const (
	resembles  = 0.5
	sameWithin = 0.75
)

// titleBreak is what separates the parts of a title.
var titleBreak = regexp.MustCompile(` [\-–·] |[|»«•—]|\s*::?\s`)

// keptWords is the most words of a part of a title that is a name as a whole.
const keptWords = 4

// Name returns the name of the company in the title of its home page, or in another short text:
// the part that resembles the names most, without words such as "online shop". similar is false if
// no part resembles them. It is then the first part, unless that is a slogan.
func (n Names) Name(title string) (name string, similar bool) {
	parts := titleBreak.Split(title, -1)
	best := 0.0
	for _, part := range parts {
		if found, score := n.within(part); score > best {
			name, best = found, score
		}
	}
	if best > 0 {
		return name, true
	}
	first := strings.TrimSpace(parts[0])
	if len(strings.Fields(first)) > nameWordsMax || trimNoise(first) == "" {
		return "", false
	}
	return first, false
}

// Part returns the part of a name that resembles the names, if it has several parts, such as a slogan.
// Otherwise it returns the text, or "" for a text such as "Home".
func (n Names) Part(text string) string {
	if trimNoise(text) == "" {
		return ""
	}
	if titleBreak.MatchString(text) {
		if name, similar := n.Name(text); similar {
			return name
		}
	}
	return text
}

// within returns the name in one part of a title, and a score, which is 0 if there is none.
func (n Names) within(part string) (string, float64) {
	words := strings.Fields(part)
	start, end, best := 0, 0, 0.0
	for i := range words {
		for j := i + 1; j <= min(len(words), i+nameWordsMax); j++ {
			run := strings.Join(words[i:j], " ")
			if s := n.similarity(run); s > best && (i == 0 || isProper(run)) {
				start, end, best = i, j, s
			}
		}
	}
	whole := n.Similarity(part) // decides between parts with equal words
	name := strings.Join(words[start:end], " ")
	switch after := trimNoise(strings.Join(words[end:], " ")); {
	case whole >= sameWithin:
		return strings.Trim(part, punctuation), best + whole
	case best < resembles:
		return "", 0
	case trimNoise(strings.Join(words[:start], " ")) == "" && end-start+len(strings.Fields(after)) <= keptWords:
		return strings.Trim(name+" "+after, punctuation), best + whole
	case best < sameWithin:
		return "", 0
	}
	return strings.Trim(name, punctuation+".!?()"), best + whole
}

// properBytes is the length from which a word without a capital is a name.
const properBytes = 6

// isProper reports whether words within a text can be a name.
func isProper(words string) bool {
	return len(words) >= properBytes || strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsLower(r) && !unicode.IsSpace(r) })
}

// punctuation is what can separate a name from the words around it.
const punctuation = " ,;:-–—|"

// noise are the words around a name.
var noise = func() (all [][]string) {
	for _, words := range wordLists["title noise"] {
		all = append(all, strings.Fields(words))
	}
	return all
}()

// trimNoise removes noise and punctuation at both ends of a text.
func trimNoise(text string) string {
	words := strings.Fields(strings.Trim(text, punctuation))
	same := func(some, of []string) bool {
		return fold(strings.Trim(strings.Join(some, " "), punctuation)) == strings.Join(of, " ")
	}
	for trimmed := true; trimmed; {
		trimmed = false
		for _, of := range noise {
			if k := len(of); k <= len(words) && same(words[:k], of) {
				words, trimmed = words[k:], true
			} else if k <= len(words) && same(words[len(words)-k:], of) {
				words, trimmed = words[:len(words)-k], true
			}
		}
	}
	return strings.Trim(strings.Join(words, " "), punctuation)
}
