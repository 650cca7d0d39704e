package facts

import (
	"strings"
	"testing"

	"companyscore/scoring"
)

// A country is any code that has a region, or a name.
func TestCountries(t *testing.T) {
	t.Parallel()
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			code := string([]rune{a, b})
			var row scoring.CompanyFacts
			if err := setCountry(&row, strings.ToLower(code)); scoring.RegionOf(code) != scoring.Unknown &&
				(err != nil || row.Country != code) {
				t.Errorf("%s became %q: %v", code, row.Country, err)
			}
		}
	}
	for text, want := range map[string]string{"Germany": "DE", "AQ": "AQ", "czech republic": "CZ", "nowhere": "", "ZZ": "", "": ""} {
		var row scoring.CompanyFacts
		if err := setCountry(&row, text); row.Country != want || (err == nil) != (want != "") {
			t.Errorf("%q became %q: %v", text, row.Country, err)
		}
	}
}
