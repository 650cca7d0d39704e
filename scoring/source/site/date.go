package site

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	dateISO     = regexp.MustCompile(`(?:^|[^0-9])([0-9]{4})[-/.]([0-9]{1,2})(?:[-/.]([0-9]{1,2}))?(?:[^0-9]|$)`)
	dateNumeric = regexp.MustCompile(`(?:^|[^0-9])([0-9]{1,2})([-/.])([0-9]{1,2})[-/.]([0-9]{4})(?:[^0-9]|$)`)
	dateTime    = regexp.MustCompile(
		`(?:^|[^0-9])([0-9]{1,2})[:h]([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?\s*([ap]\.?\s?m\b\.?)?\s*(?:(?:gmt|utc)?([+-][0-9]{2}):?([0-9]{2})?|([a-z]+))?`)
	dateWord = regexp.MustCompile(`[\p{L}]+|[0-9]+`)
)

// dateBytesMax is the length of the longest text that is read as a date.
const dateBytesMax = 64

// w3cLayouts are the forms of dates in Atom feeds and sitemaps.
var w3cLayouts = []string{
	time.RFC3339, time.DateOnly, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700", time.DateTime, "2006-01",
}

// parseW3C parses a date of w3cLayouts; zero if it is another text.
func parseW3C(text string) time.Time {
	if len(text) > dateBytesMax {
		return time.Time{}
	}
	for _, layout := range w3cLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// parseDate parses a date as feeds have it: that of parseW3C, that of RFC 822, and forms near them
// with a 12-hour clock, or with months in another European language. It returns zero for any other
// text. An unknown time zone counts as UTC.
func parseDate(text string) time.Time {
	if t := parseW3C(text); !t.IsZero() || len(text) > dateBytesMax {
		return t
	}
	text = fold(text)
	clock, offset, american := time.Duration(0), time.Duration(0), false
	if m := dateTime.FindStringSubmatchIndex(text); m != nil {
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		hour := number2(group(1))
		if half := group(4); half != "" {
			american = true
			if hour %= 12; half[0] == 'p' {
				hour += 12
			}
		}
		clock = time.Duration(hour)*time.Hour + time.Duration(number2(group(2)))*time.Minute + time.Duration(number2(group(3)))*time.Second
		if zone := group(5); zone != "" {
			offset = time.Duration(number2(zone[1:]))*time.Hour + time.Duration(number2(group(6)))*time.Minute
			if zone[0] == '-' {
				offset = -offset
			}
		} else {
			offset = zones[group(7)]
		}
		text = text[:m[2]] + " " + text[m[1]:]
	}
	if clock > 24*time.Hour || offset.Abs() > 24*time.Hour {
		return time.Time{}
	}
	year, month, day := parseDay(text, american)
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if year == 0 || t.Day() != day || int(t.Month()) != month {
		return time.Time{}
	}
	return t.Add(clock - offset)
}

// parseDay reads the day in a folded text without a time. year is 0 if there is none. american
// puts the month before the day in numbers.
func parseDay(text string, american bool) (year, month, day int) {
	if m := dateISO.FindStringSubmatch(text); m != nil {
		if day = 1; m[3] != "" {
			day = number2(m[3])
		}
		return number2(m[1]), number2(m[2]), day
	}
	if m := dateNumeric.FindStringSubmatch(text); m != nil {
		day, month, year = number2(m[1]), number2(m[3]), number2(m[4])
		switch {
		case m[2] == "/" && american, month > 12:
			day, month = month, day
		case m[2] == "/" && day <= 12 && day != month:
			return 0, 0, 0 // the order is unknown
		}
		return year, month, day
	}
	weekday := false // the month may be a day of the week
	for i, word := range dateWord.FindAllString(text, -1) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil:
			// A day of the week can begin like a month: mar, 15 mar 2022.
			if named := monthOf(word); named > 0 && (month == 0 || weekday) {
				month, weekday = named, i == 0
			}
		case len(word) == 4 && year == 0:
			year = n
		case len(word) <= 2 && day == 0:
			day = n
		case len(word) == 2 && year == 0:
			if year = 2000 + n; n > 68 {
				year -= 100
			}
		}
	}
	if day == 0 || month == 0 {
		return 0, 0, 0
	}
	return year, month, day
}

// number2 returns the number of a text of digits.
func number2(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// monthOf returns the month, from 1 to 12, whose name begins with the longest known beginning of a
// folded word, 0 if none.
func monthOf(word string) (month int) {
	longest := 0
	for i, stems := range months {
		for _, stem := range stems {
			if len(stem) > longest && strings.HasPrefix(word, stem) {
				month, longest = i+1, len(stem)
			}
		}
	}
	return month
}

var months = func() (all [12][]string) {
	for i := range all {
		all[i] = wordLists["month "+strconv.Itoa(i+1)]
	}
	return all
}()

// zones are offsets from UTC by the name of the time zone.
var zones = func() map[string]time.Duration {
	all := make(map[string]time.Duration)
	for name, words := range wordLists {
		offset, ok := strings.CutPrefix(name, "zone ")
		if !ok {
			continue
		}
		t, err := time.Parse("-0700", offset)
		if err != nil {
			panic("words.txt: " + name)
		}
		_, seconds := t.Zone()
		for _, word := range words {
			all[word] = time.Duration(seconds) * time.Second
		}
	}
	return all
}()
