// Package country reads names and codes of countries. It is safe for concurrent use.
package country

import (
	"maps"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// usual are names in lower case that are in use beside the English names of Unicode.
var usual = map[string]string{
	"usa": "US", "u.s.a.": "US", "u.s.": "US", "united states of america": "US",
	"uk": "GB", "great britain": "GB", "england": "GB", "scotland": "GB", "wales": "GB",
	"korea": "KR", "the netherlands": "NL", "deutschland": "DE", "czech republic": "CZ", "uae": "AE", "hong kong": "HK",
}

// codes maps English names in lower case to codes.
var codes = sync.OnceValue(func() map[string]string {
	all := maps.Clone(usual)
	english := display.English.Regions()
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			code := string([]rune{a, b})
			region, err := language.ParseRegion(code)
			if err != nil || !region.IsCountry() || region.Canonicalize().String() != code {
				continue
			}
			if name := strings.ToLower(english.Name(region)); name != "" && name != strings.ToLower(code) {
				all[name] = code
			}
		}
	}
	return all
})

// Code returns the ISO 3166-1 alpha-2 code of a country code of two or three letters or of an
// English name, in any case, else "".
func Code(text string) string {
	text = strings.TrimSpace(text)
	if code, ok := codes()[strings.ToLower(text)]; ok {
		return code
	}
	if len(text) != 2 && len(text) != 3 {
		return ""
	}
	region, err := language.ParseRegion(strings.ToUpper(text))
	if err != nil || !region.IsCountry() {
		return ""
	}
	return region.Canonicalize().String()
}
