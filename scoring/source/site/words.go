package site

import (
	_ "embed"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

//go:embed words.txt
var wordsText string

// wordLists are the lists of words.txt, folded, by name.
var wordLists = readWords(wordsText)

// readWords reads the format of words.txt. Lines without a colon and comments are skipped.
func readWords(text string) map[string][]string {
	lists := make(map[string][]string)
	for line := range strings.Lines(text) {
		name, words, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		for word := range strings.SplitSeq(words, ",") {
			lists[name] = append(lists[name], fold(strings.TrimSpace(word)))
		}
	}
	return lists
}

// wordSet returns the lists of the names as one set.
func wordSet(names ...string) map[string]bool {
	set := make(map[string]bool)
	for _, name := range names {
		for _, word := range wordLists[name] {
			set[word] = true
		}
	}
	return set
}

// letters are lower-case letters that do not decompose, and their plain form.
var letters = strings.NewReplacer("ß", "ss", "æ", "ae", "ø", "o", "œ", "oe", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i", "’", "'")

// umlauts are the forms of German and Scandinavian vowels in names of hosts.
var umlauts = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ø", "oe", "å", "aa")

// fold returns text in lower case and without accents.
func fold(text string) string {
	text = strings.ToLower(text)
	if strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return text
	}
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(text))
	return letters.Replace(norm.NFC.String(text))
}
