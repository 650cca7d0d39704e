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
		page    *Page
		section int
		rank    int
	}
	var found []ranked
	for _, p := range l.ordered {
		var ofPage []ranked
		for i := range p.sections {
			if rank, ok := p.rank(i, words); ok {
				ofPage = append(ofPage, ranked{p, i, rank})
			}
		}
		slices.SortStableFunc(ofPage, func(a, b ranked) int { return cmp.Compare(b.rank, a.rank) })
		found = append(found, ofPage[:min(len(ofPage), pageHitsMax)]...)
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Compare(b.rank, a.rank) })
	hits := make([]Hit, min(len(found), hitsMax))
	for i := range hits {
		p, s := found[i].page, &found[i].page.sections[found[i].section]
		hits[i] = s.excerpt(words)
		hits[i].Page, hits[i].Path = p.Title, p.Path+s.anchor
		if found[i].section > 0 {
			hits[i].Section = s.title
		}
	}
	return hits
}

// rank returns 2 for each word in the title of a section, and 1 for each other word in that of the page. It returns false if a word is
// in neither title nor in the text.
func (p *Page) rank(i int, words []string) (rank int, ok bool) {
	for _, word := range words {
		switch s := &p.sections[i]; {
		case strings.Contains(s.lowerTitle, word):
			rank += 2
		case strings.Contains(p.sections[0].lowerTitle, word):
			rank++
		case !strings.Contains(s.lowerText, word):
			return 0, false
		}
	}
	return rank, true
}

// excerptBefore and excerptAfter are the bytes shown around a word.
const excerptBefore, excerptAfter = 80, 160

// excerpt returns a hit with the text around the first of the words that the text has.
func (s *section) excerpt(words []string) (h Hit) {
	if len(s.lowerText) != len(s.text) {
		return h // some letter has another length in lower case
	}
	for _, word := range words {
		if at := strings.Index(s.lowerText, word); at >= 0 {
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
