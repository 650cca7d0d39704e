package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"companyscore/internal/country"
	"companyscore/scoring"
)

// secFiler is the submissions of a filer.
type secFiler struct {
	Name, Country, Website string
	SIC                    int
	Tickers                []string
	// Filings are those that signals use, newest first.
	Filings []filing
}

type filing struct {
	Form string
	On   time.Time
	// Distress is true if a report names a distress event.
	Distress bool
}

// distressItems are items of form 8-K: bankruptcy, acceleration of an obligation, notice of
// delisting, withdrawal of financial statements.
var distressItems = []string{"1.03", "2.04", "3.01", "4.02"}

// Forms by what they are.
var (
	// raiseForms offer securities of the company. Of the prospectuses, 424B3 and 424B7 mostly name
	// holders who sell theirs, and 424B6 and 424B8 are other ones.
	raiseForms = strings.Fields("D D/A S-1 S-3 S-3ASR S-11 F-1 F-3 F-3ASR F-10 424B1 424B2 424B4 424B5")
	// annualForms are annual reports, with audited numbers.
	annualForms = []string{"10-K", "10-KT", "20-F", "40-F"}
	// interimForms are reports with the balance sheet of another day.
	interimForms = []string{"10-Q", "10-QT", "6-K"}
)

func isRaise(form string) bool   { return slices.Contains(raiseForms, form) }
func isLate(form string) bool    { return strings.HasPrefix(form, "NT ") }
func isAnnual(form string) bool  { return slices.Contains(annualForms, amended(form)) }
func isInterim(form string) bool { return slices.Contains(interimForms, amended(form)) }

// amended returns the form that a form amends, or the form itself.
func amended(form string) string { return strings.TrimSuffix(form, "/A") }

// filingsMax bounds the filings of a company.
const filingsMax = 5000

func parseFiler(body io.Reader) (secFiler, error) {
	var answer struct {
		Name      string   `json:"name"`
		SIC       string   `json:"sic"`
		Tickers   []string `json:"tickers"`
		Website   string   `json:"website"`
		Addresses struct {
			Business struct {
				Code        string `json:"stateOrCountry"`
				Description string `json:"stateOrCountryDescription"`
			} `json:"business"`
		} `json:"addresses"`
		Filings *struct {
			Recent struct {
				Form  []string `json:"form"`
				Date  []string `json:"filingDate"`
				Items []string `json:"items"`
			} `json:"recent"`
		} `json:"filings"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return secFiler{}, err
	}
	if answer.Filings == nil || answer.Name == "" {
		return secFiler{}, errors.New("the answer has no filer")
	}
	sic, err := strconv.Atoi(answer.SIC)
	if err != nil {
		sic = 0 // some filers have none
	}
	filer := secFiler{Name: filerName(answer.Name), SIC: sic, Website: answer.Website,
		Country: secCountry(answer.Addresses.Business.Code, answer.Addresses.Business.Description)}
	for _, ticker := range answer.Tickers[:min(len(answer.Tickers), 20)] {
		if ticker = strings.ToUpper(ticker); tickerText.MatchString(ticker) {
			filer.Tickers = append(filer.Tickers, ticker)
		}
	}
	recent := answer.Filings.Recent
	if len(recent.Form) != len(recent.Date) {
		return secFiler{}, fmt.Errorf("%d forms with %d dates", len(recent.Form), len(recent.Date))
	}
	for i, form := range recent.Form {
		f := filing{Form: form}
		if form == "8-K" || form == "8-K/A" {
			if i < len(recent.Items) && form == "8-K" {
				for item := range strings.SplitSeq(recent.Items[i], ",") {
					f.Distress = f.Distress || slices.Contains(distressItems, strings.TrimSpace(item))
				}
			}
		} else if !isRaise(form) && !isLate(form) && !isAnnual(form) {
			continue
		}
		if f.On, err = time.Parse(time.DateOnly, recent.Date[i]); err != nil {
			return secFiler{}, fmt.Errorf("filing on %.30q: not a date", recent.Date[i])
		}
		if filer.Filings = append(filer.Filings, f); len(filer.Filings) == filingsMax {
			break
		}
	}
	slices.SortStableFunc(filer.Filings, func(a, b filing) int { return b.On.Compare(a.On) })
	return filer, nil
}

// Ages up to which filings count.
const (
	eventSpan  = 730 * day
	annualSpan = 548 * day // 18 months
)

func (f secFiler) observe(s *builder, now time.Time) {
	if len(f.Tickers) > 0 {
		s.ok("public_listing", 1)
	} else {
		s.absent("public_listing")
	}
	var late, distress int
	reports := false
	raised := time.Time{}
	for _, filing := range f.Filings {
		age := now.Sub(filing.On)
		if age < 0 {
			continue
		}
		switch {
		case isLate(filing.Form) && age <= eventSpan:
			late++
		case isAnnual(filing.Form) && age <= annualSpan:
			reports = reports || strings.HasPrefix(filing.Form, "10-K")
		case strings.HasPrefix(filing.Form, "8-K") && age <= eventSpan:
			reports = true
			if filing.Distress {
				distress++
			}
		case isRaise(filing.Form) && filing.On.After(raised):
			raised = filing.On
		}
	}
	// Foreign issuers report events on another form, without items.
	if reports {
		s.ok("distress_events_24m", float64(distress+late))
	} else {
		s.missing(scoring.ReasonNotApplicable, "distress_events_24m")
	}
	if raised.IsZero() {
		s.absent("capital_raise_recency_days")
	} else {
		s.ok("capital_raise_recency_days", now.Sub(raised).Hours()/24)
	}
}

func (f secFiler) claim(s *builder, cik, via string, req Request) {
	why := "Central Index Key " + cik + " belongs to " + f.Name
	if via == "name" {
		why = "the name equals only that of filer " + cik + ", " + f.Name
	}
	if strings.Contains(strings.ToLower(f.Website), req.Registrable) {
		why += ", whose website is " + f.Website
	}
	s.claim(CIK, via, cik, why)
	s.claim(Name, via, titleCase(f.Name, f.Tickers), why)
	s.claim(Country, via, f.Country, "business address of filer "+cik)
	if f.SIC > 0 {
		s.claim(SIC, via, fmt.Sprintf("%04d", f.SIC), "industry code of filer "+cik)
	}
	if len(f.Tickers) > 0 {
		s.claim(Ticker, via, f.Tickers[0], "ticker of filer "+cik)
	}
}

// nameSuffix is what the SEC appends to a name to tell filers apart, such as " /DE/" or " /NEW".
var nameSuffix = regexp.MustCompile(`(\s*[/\\]([A-Z]{2,4}[/\\]?)?)+$`)

// filerName prepares the name of a filer for display and comparison.
func filerName(name string) string {
	name = scoring.CleanName(name)
	return cmp.Or(nameSuffix.ReplaceAllString(name, ""), name)
}

// Words that titleCase writes otherwise than with a capital first letter.
var (
	capitalWords = strings.Fields("AB AG ASA BV KGAA LLC LLP LP NV PLC SA SE USA")
	smallWords   = strings.Fields("OF AND THE FOR IN")
	// shortWords look like acronyms, since they have no vowel.
	shortWords = strings.Fields("LTD PTY MFG INTL MT ST DR JR SR")
)

// titleCase returns a name in capitals with capital first letters only, but for acronyms. It does
// not change a name with small letters.
func titleCase(name string, tickers []string) string {
	if strings.ContainsFunc(name, unicode.IsLower) {
		return name
	}
	words := strings.Fields(name)
	for i, word := range words {
		bare := strings.TrimRight(word, ".,")
		switch {
		case i > 0 && slices.Contains(smallWords, bare):
			words[i] = strings.ToLower(word)
		case slices.Contains(shortWords, bare) || !slices.Contains(capitalWords, bare) && !isAcronym(bare, tickers):
			words[i] = capitalised(word)
		}
	}
	return strings.Join(words, " ")
}

// isAcronym reports whether a word in capitals is written so: it has a digit or an ampersand, is
// made of initials with dots, has at most four letters and no vowel, or is a short ticker.
func isAcronym(word string, tickers []string) bool {
	letters := len([]rune(word))
	switch {
	case strings.ContainsAny(word, "&0123456789"):
		return true
	case strings.Contains(word, "."):
		return !slices.ContainsFunc(strings.Split(word, "."), func(part string) bool { return len([]rune(part)) > 1 })
	case letters <= 4 && !strings.ContainsAny(word, "AEIOUY"):
		return true
	}
	return letters <= 3 && slices.Contains(tickers, word)
}

// capitalised returns a word in small letters but for the first, and those after a hyphen.
func capitalised(word string) string {
	parts := strings.Split(strings.ToLower(word), "-")
	for i, part := range parts {
		first, size := utf8.DecodeRuneInString(part)
		if size > 0 {
			parts[i] = string(unicode.ToUpper(first)) + part[size:]
		}
	}
	return strings.Join(parts, "-")
}

// secStates are the codes of US states and territories.
var secStates = strings.Fields("AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND " +
	"OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY PR GU VI AS X1")

// secCountries are the SEC's codes of countries; those of Canada are of provinces. Other
// countries are found by their description.
var secCountries = map[string]string{
	"A0": "CA", "A1": "CA", "A2": "CA", "A3": "CA", "A4": "CA", "A5": "CA", "A6": "CA", "A7": "CA", "A8": "CA", "A9": "CA", "B0": "CA",
	"Z4": "CA",
	"X0": "GB", "2M": "DE", "I0": "FR", "M0": "JP", "F4": "CN", "K3": "HK", "L3": "IL", "L2": "IE", "P7": "NL", "V8": "CH", "V7": "SE",
	"N4": "LU", "D0": "BM", "E9": "KY",
	"U0": "SG", "F5": "TW", "M5": "KR", "K7": "IN", "O5": "MX", "D5": "BR", "C3": "AU", "G7": "DK", "H9": "FI", "Q8": "NO", "L6": "IT",
	"U3": "ES", "C9": "BE", "C1": "AR",
}

func secCountry(code, description string) string {
	code = strings.ToUpper(strings.TrimSpace(code))
	if slices.Contains(secStates, code) {
		return "US"
	}
	return cmp.Or(secCountries[code], country.Code(description))
}
