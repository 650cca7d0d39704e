package scoring

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SectorOf returns the sector of a company, or Unknown. The first industry label that matches
// decides; else the SIC code; else a vote over the site's text.
func SectorOf(id Identity) string {
	for _, industry := range id.Industries {
		if name := sectorOfLabel(strings.ToLower(industry)); name != Unknown {
			return name
		}
	}
	for _, s := range sectors {
		if s.covers(id.SIC) {
			return s.name
		}
	}
	return voteSector(id.Site)
}

// sectorOfLabel returns the sector with the longest phrase in a lower-case industry label.
func sectorOfLabel(label string) string {
	best, length := Unknown, 0
	for i := range sectors {
		for _, phrases := range [][]string{sectors[i].labels, sectors[i].keywords} {
			for _, phrase := range phrases {
				if len(phrase) > length && containsWord(label, phrase) {
					best, length = sectors[i].name, len(phrase)
				}
			}
		}
	}
	return best
}

// SectorArticles returns the articles of the English Wikipedia whose pageviews measure the
// attention to a sector, nil for an unknown sector. Callers must not change the slice.
func SectorArticles(name string) []string {
	for _, s := range sectors {
		if s.name == name {
			return s.articles
		}
	}
	return nil
}

// votesNeeded is the least number of points that decide a sector.
const votesNeeded = 3

// voteSector gives each sector points for its keywords in each part of the site, and returns the
// one with the most. Of equal sectors the first in the table wins.
func voteSector(site SiteText) string {
	if site == (SiteText{}) {
		return Unknown
	}
	parts := []struct {
		text   string
		weight int
	}{
		{strings.ToLower(site.Title), 3},
		{strings.ToLower(site.Description), 2},
		{strings.ToLower(site.Headings), 2},
		{strings.ToLower(site.Structured), 2},
		{strings.ToLower(site.Links), 1},
	}
	best, most := Unknown, votesNeeded-1
	for _, s := range sectors {
		votes := 0
		for _, part := range parts {
			votes += part.weight * s.hits(part.text)
		}
		if votes > most {
			best, most = s.name, votes
		}
	}
	return best
}

func (s *sector) covers(sic int) bool {
	return slices.ContainsFunc(s.sic, func(r [2]int) bool { return r[0] <= sic && sic <= r[1] })
}

// hits counts the keywords of the sector in a lower-case text.
func (s *sector) hits(text string) (n int) {
	for _, keyword := range s.keywords {
		if containsWord(text, keyword) {
			n++
		}
	}
	return n
}

// containsWord reports whether word occurs in text without a letter or digit before or after it.
// word begins with an ASCII letter.
func containsWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start := from + i
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[start+len(word):])
		if !inWord(before) && !inWord(after) {
			return true
		}
		from = start + 1
	}
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
