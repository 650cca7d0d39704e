package documents

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of a search.
const (
	// QueryMax is the maximum length of a query in bytes. The rest is ignored.
	QueryMax = 100
	hitsMax  = 30
	// pageHitsMax bounds the hits of one page.
	pageHitsMax = 3
)

// Hit is a section that has all words of a query.
type Hit struct {
	Path    string // address with the anchor of the section
	Page    string // title
	Section string // title, "" for the first section of a page
	// The text around the first word that the text has: the word is Match. All are "" if only titles have the words.
	Before, Match, After string
}

// Search returns the sections that have all words of a query in their text or in a title, in any case.
// Sections with more of the words in their titles come first, then they are in the order of the navigation.
func (l *Library) Search(query string) []Hit {
	words := strings.Fields(strings.ToLower(strings.ToValidUTF8(query[:min(len(query), QueryMax)], "")))
	if len(words) == 0 {
		return nil
	}
	type ranked struct {
		Hit
		rank int
	}
	var found []ranked
	for _, p := range l.ordered {
		var ofPage []ranked
		title := strings.ToLower(p.Title)
		for i := range p.sections {
			s := &p.sections[i]
			rank := 0
			for _, word := range words {
				switch {
				case strings.Contains(strings.ToLower(s.title), word):
					rank += 2
				case strings.Contains(title, word):
					rank++
				case !strings.Contains(s.lower, word):
					rank = -1 << 20
				}
			}
			if rank < 0 {
				continue
			}
			hit := ranked{s.excerpt(words), rank}
			hit.Page, hit.Path = p.Title, p.Path+s.anchor
			if i > 0 {
				hit.Section = s.title
			}
			ofPage = append(ofPage, hit)
		}
		slices.SortStableFunc(ofPage, func(a, b ranked) int { return cmp.Compare(b.rank, a.rank) })
		found = append(found, ofPage[:min(len(ofPage), pageHitsMax)]...)
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Compare(b.rank, a.rank) })
	hits := make([]Hit, min(len(found), hitsMax))
	for i := range hits {
		hits[i] = found[i].Hit
	}
	return hits
}

// excerptBefore and excerptAfter are the bytes shown around a word.
const excerptBefore, excerptAfter = 80, 160

// excerpt returns a hit with the text around the first of the words that the text has.
func (s *section) excerpt(words []string) (h Hit) {
	lower := strings.ToLower(s.text)
	if len(lower) != len(s.text) {
		return h // some letter has another length in lower case
	}
	for _, word := range words {
		if at := strings.Index(lower, word); at >= 0 {
			end := at + len(word)
			from, to := min(at, wordStart(s.text, at-excerptBefore)), wordStart(s.text, end+excerptAfter)
			return Hit{Before: s.text[from:at], Match: s.text[at:end], After: s.text[end:to]}
		}
	}
	return h
}

// wordStart returns the first index from at on that begins a word, within the bounds of a text.
func wordStart(text string, at int) int {
	if at <= 0 {
		return 0
	}
	if at >= len(text) {
		return len(text)
	}
	space := strings.IndexByte(text[at:], ' ')
	if space < 0 {
		return len(text)
	}
	return at + space + 1
}
