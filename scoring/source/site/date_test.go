package site

import (
	"strings"
	"testing"
	"time"
)

func TestParseDate(t *testing.T) {
	t.Parallel()
	want := time.Date(2022, 3, 15, 19, 15, 4, 0, time.UTC)
	f := func(text string, want time.Time) {
		t.Helper()
		if got := parseDate(text); !got.Equal(want) {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{
		"2022-03-15T19:15:04Z", "2022-03-15T20:15:04+01:00", "2022-03-15T19:15:04.000Z", "2022-03-15T20:15:04+0100",
		"2022-03-15 20:15:04,123 +0100",
		"2022-03-15 19:15:04", "2022-03-15T19:15:04", "2022-03-15 20:15:04 +0100", "2022/03/15 19:15:04", "2022-03-15 19:15:04 UTC",
		"Tue, 15 Mar 2022 19:15:04 GMT", "Tue, 15 Mar 2022 20:15:04 +0100", "Tue, 15 Mar 2022 19:15:04 Z", "15 Mar 2022 19:15:04 UT",
		"Tue, 15 Mar 22 19:15:04 +0000", "Tuesday, 15-Mar-22 19:15:04 GMT", "Tue Mar 15 19:15:04 2022", "Tue Mar 15 19:15:04 UTC 2022",
		"Tue, Mar 15 2022 07:15:04 PM", "Tuesday, March 15, 2022 7:15:04 pm", "March 15th, 2022 7:15:04 p.m.", "3/15/2022 7:15:04 PM",
		"Tue, 15 Mar 2022 14:15:04 EST", "Tue, 15 Mar 2022 15:15:04 EDT", "Tue, 15 Mar 2022 12:15:04 PDT", "15 Mar 2022 20:15:04 CET",
		"mar, 15 mar 2022 20:15:04 +0100", "mar. 15 mars 2022 20:15:04 +0100", "mardi 15 mars 2022 à 19:15:04", "15 mars 2022 19h15:04",
		"ter, 15 mar 2022 16:15:04 -0300", "terça-feira, 15 de março de 2022 às 19:15:04", "mar, 15 marzo 2022 19:15:04 Z",
		"Di, 15 Mär 2022 20:15:04 +0100", "Dienstag, 15. März 2022 19:15:04 Uhr", "15.03.2022 19:15:04", "15/03/2022 19:15:04",
		"di, 15 mrt 2022 20:15:04 +0100", "tis, 15 mars 2022 20:15:04 +0100", "tirs. 15. mars 2022 20:15:04 +0100",
		"ti, 15 maaliskuuta 2022 21:15:04 +0200", "wt., 15 marca 2022 20:15:04 +0100", "út, 15 březen 2022 20:15:04 +0100",
		"2022. március 15. 19:15:04", "15 Mart 2022 Salı 19:15:04", "вт, 15 мар 2022 22:15:04 +0300", "15 марта 2022 22:15:04 MSK",
	} {
		f(text, want)
	}
	day := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	for text, month := range map[string]time.Month{
		"ene": 1, "gennaio": 1, "janvier": 1, "stycznia": 1, "leden": 1, "tammikuu": 1, "ocak": 1, "ianuarie": 1, "fév": 2, "février": 2,
		"lutego": 2, "února": 2, "helmikuu": 2, "şubat": 2, "maart": 3, "abril": 4, "avril": 4, "kwietnia": 4, "dubna": 4, "nisan": 4,
		"mei": 5, "mai": 5,
		"maj": 5, "maggio": 5, "květen": 5, "mayıs": 5, "juin": 6, "giugno": 6, "czerwca": 6, "června": 6, "kesäkuu": 6, "haziran": 6,
		"juillet": 7, "juil.": 7, "luglio": 7, "lipca": 7, "července": 7, "červenec": 7, "heinäkuu": 7, "temmuz": 7, "août": 8, "agosto": 8,
		"sierpnia": 8, "srpna": 8, "elokuu": 8, "set": 9, "settembre": 9, "września": 9, "září": 9, "syyskuu": 9, "eylül": 9,
		"szeptember": 9,
		"out":        10, "ottobre": 10, "október": 10, "października": 10, "října": 10, "lokakuu": 10, "listopada": 11, "marraskuu": 11,
		"kasım":     11,
		"noiembrie": 11, "dez": 12, "dicembre": 12, "décembre": 12, "grudnia": 12, "prosince": 12, "joulukuu": 12, "aralık": 12,
		"января": 1, "мая": 5, "сентября": 9, "Ιουλίου": 7,
	} {
		f("15 "+text+" 2022", day(2022, month, 15))
		f(strings.ToUpper(text)+" 15, 2022", day(2022, month, 15))
	}
	f("2022-03", day(2022, 3, 1))
	f("15 Mar 99", day(1999, 3, 15))
	f("12:05:00 AM 3/15/2022", day(2022, 3, 15).Add(5*time.Minute))
	f("03/03/2022", day(2022, 3, 3))
	for _, text := range []string{
		"", "soon", "2022", "15", "March", "15 foo 2022", "31 Feb 2022", "2022-02-31", "2022-13-01", "03/04/2022", "0 Mar 2022",
		"Tue, 15 Mar", "15 Mar 2022 99:00:00", "15 Mar 2022 10:00 +9900", strings.Repeat("1", 65), "\xff\xfe 15 Mar",
	} {
		f(text, time.Time{})
	}
}

func FuzzParseDate(f *testing.F) {
	f.Add("Tue, 15 Mar 2022 19:15:04 Z")
	f.Add("3/15/2022 7:15:04 PM")
	f.Add("20220315T99:99+9999")
	f.Fuzz(func(t *testing.T, text string) {
		if got := parseDate(text); !got.IsZero() && got.Location() != time.UTC {
			t.Errorf("%q is %s", text, got)
		}
	})
}

// BenchmarkParseDate measures the slowest kinds of dates.
func BenchmarkParseDate(b *testing.B) {
	for b.Loop() {
		parseDate("terça-feira, 15 de março de 2022 às 19:15:04")
	}
}
