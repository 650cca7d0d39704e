package site

import (
	"testing"
	"unicode/utf8"
)

func TestNameInTitle(t *testing.T) {
	t.Parallel()
	f := func(host, title, want string, similar bool) {
		t.Helper()
		got, ok := NamesOf(host).Name(title)
		if got != want || ok != similar {
			t.Errorf("%s, %q: %q, %v; want %q, %v", host, title, got, ok, want, similar)
		}
	}
	for _, title := range []string{
		"Quillworks | Payments", "Quillworks - Payments", "Quillworks – Payments", "Quillworks: Payments", "Quillworks · Payments",
		"Quillworks :: Payments", "Quillworks — Payments", "Quillworks", "Payments for bakeries | Quillworks",
		"Home - Quillworks", "Welcome to Quillworks", "Quillworks Official Site", "Quillworks Online Shop",
		"Payments | Quillworks | Quillworks",
		"We move the money of all bakers and all their friends | Quillworks", "Payments for all bakers in Europe by Quillworks",
		"Quillworks, payments for bakers in all of Europe", "Pay your bakers with Quillworks – or by card",
	} {
		f("www.quillworks.com", title, "Quillworks", true)
	}
	// Other words of a short part belong to the name.
	f("quillworks.com", "Quillworks Ovens Ltd", "Quillworks Ovens Ltd", true)
	f("quill-works.co.uk", "Ovens & Mixers | Quill Works UK", "Quill Works UK", true)
	f("quillworks.com", "Best ovens of Quillworks Ovens", "Quillworks", true)
	f("ovens.quillworks.com", "Mixers | The Ovens", "Ovens", true)
	f("thequillshop.com", "The Quill Shop", "The Quill Shop", true)
	f("homequill.com.mx", "Home Quill México | Ovens", "Home Quill México", true)
	f("quillworks.dk", "Ovne på Quillworks", "Quillworks", true)
	f("quillworks.pt", "Bem-vindo à Quillworks", "Quillworks", true)
	f("quillworks.de", "Öfen und Mixer bei quillworks.de", "quillworks.de", true)
	f("baeckerei-mueller.de", "Frisches Brot | Bäckerei Müller", "Bäckerei Müller", true)
	f("xn--mller-kva.de", "Frisches Brot | Müller", "Müller", true)
	f("getquill.com", "Payments | Quill", "Quill", true)
	f("ge.com", "Turbines | General Engines", "General Engines", true)
	f("ge.com", "We build great engines for ships and planes", "", false)
	f("it.com", "We make it happen", "We make it happen", false)
	// Without a part that resembles the host it is the first one.
	f("qw.com", "Quillworks | Payments", "Quillworks", false)
	f("qw.com", "Quill-works", "Quill-works", false)
	f("qw.com", "Home | Quillworks", "", false)
	f("qw.com", "Homepage", "", false)
	f("qw.com", "We move the money of all bakers | Payments", "", false)
	f("qw.com", "", "", false)
	f("", "Quillworks", "Quillworks", false)
}

func TestPartOfName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Quillworks": "Quillworks", "Quillworks | Payments": "Quillworks", "Payments - Quillworks": "Quillworks",
		"Ovenly | Ovens": "Ovenly | Ovens", "Home": "", "": "",
		"The Trustees of the College of Quillworks in Ovenly": "The Trustees of the College of Quillworks in Ovenly",
	} {
		if got := NamesOf("quillworks.com").Part(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSimilarity(t *testing.T) {
	t.Parallel()
	f := func(host, text string, min, max float64) {
		t.Helper()
		if got := NamesOf(host, "Ovenly").Similarity(text); got < min || got > max {
			t.Errorf("%s, %q: %g, want %g to %g", host, text, got, min, max)
		}
	}
	f("quillworks.com", "QUILL-works", 1, 1)
	f("quillworks.com", "Quillworks.com", 1, 1)
	f("quillworks.com", "ovenly", 1, 1)
	f("quillworks.com", "Quill", 0.5, 0.5)
	f("quillworks.com", "Qu", 0, 0)
	f("quillworks.com", "Bakery", 0, 0)
	f("quillworks.com", "", 0, 0)
	f("hm.com", "Harald & Maud", 0.8, 0.8)
	f("kobenhavn.dk", "København", 1, 1)
}

func FuzzNameInTitle(f *testing.F) {
	f.Add("www.quillworks.com", "Payments | Quillworks")
	f.Add("xn--mller-kva.de", "Müller: \u0130stanbul")
	f.Fuzz(func(t *testing.T, host, title string) {
		name, _ := NamesOf(host).Name(squeeze(title, 300))
		if utf8.ValidString(title) && !utf8.ValidString(name) {
			t.Errorf("%q is no text", name)
		}
	})
}
