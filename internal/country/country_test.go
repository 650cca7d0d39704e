package country

import "testing"

func TestCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"US": "US", "us": "US", "USA": "US", "DEU": "DE", "United States": "US", "germany": "DE", " UK ": "GB", "Côte d’Ivoire": "CI",
		"Czechia": "CZ", "Czech Republic": "CZ", "Hong Kong": "HK", "South Korea": "KR", "Taiwan": "TW", "Turkey": "TR", "Vietnam": "VN",
		"United Arab Emirates": "AE", "Russia": "RU",
		"": "", "ZZ": "", "419": "", "nowhere": "", "EU": "",
	} {
		if got := Code(text); got != want {
			t.Errorf("Code(%q) = %q, want %q", text, got, want)
		}
	}
}
