// Package resolve finds the domains of companies by name, ticker, CIK, LEI or ISIN, with a likelihood. It has no store: it reads what
// is asked from a file, and is fed with the companies that are known.
package resolve

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// Kind is what identifies a company. The zero value is unknown: the form of a text tells it.
type Kind string

// The kinds, which are also the names of columns.
const (
	Name   Kind = "name"
	Ticker Kind = "ticker"
	CIK    Kind = "cik"
	LEI    Kind = "lei"
	ISIN   Kind = "isin"
)

var kinds = []Kind{Name, Ticker, CIK, LEI, ISIN}

// exchangeColumn is the column with the exchange of a ticker.
const exchangeColumn = "exchange"

// Bounds of the input.
const (
	linesMax = 100_000
	bytesMax = 64 << 20
	textMax  = 512 // bytes of one name or identifier
)

// Query is one question. Parse makes it.
type Query struct {
	// Line is the number of the line, from 1.
	Line int
	// Input is the text as given, without spaces around it.
	Input string
	Kind  Kind
	// value is the text in the form in which it is compared; exchange is that of a ticker, "" if none is given.
	value, exchange string
	// guessed is set if the form told the kind. A ticker or a CIK that nobody has is then a name.
	guessed bool
}

// Fault is a line that asks for nothing.
type Fault struct {
	Line   int
	Reason string
}

// String returns the fault as people read it.
func (f Fault) String() string { return fmt.Sprintf("line %d: %s", f.Line, f.Reason) }

var (
	tickerForm = regexp.MustCompile(`^(?:([A-Za-z][A-Za-z0-9 ]{0,19}):)?([A-Za-z0-9][A-Za-z0-9.^=&/ -]{0,19})$`)
	cikForm    = regexp.MustCompile(`^[0-9]{1,10}$`)
	leiForm    = regexp.MustCompile(`^[A-Z0-9]{18}[0-9]{2}$`)
	isinForm   = regexp.MustCompile(`^[A-Z]{2}[A-Z0-9]{9}[0-9]$`)
	// looksTicker is a ticker that is told from a name: capitals, with an exchange longer ones too.
	looksTicker = regexp.MustCompile(`^(?:[A-Z]{1,5}([.-][A-Z]{1,2})?|[A-Z][A-Za-z]{1,19}:[A-Z0-9][A-Z0-9.-]{0,9})$`)
)

// Parse returns the question about a text of a kind, "" for the kind that its form tells. It fails for a text that is empty, longer
// than 512 bytes, not UTF-8, or not of the kind.
func Parse(kind Kind, text string) (Query, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Query{}, errors.New("empty")
	case len(text) > textMax:
		return Query{}, fmt.Errorf("%d bytes: a name or identifier has at most %d", len(text), textMax)
	case !utf8.ValidString(text):
		return Query{}, errors.New("not UTF-8")
	}
	q := Query{Input: text, Kind: kind}
	if kind == "" {
		q.Kind, q.guessed = kindOf(text), true
	}
	upper := strings.ToUpper(text)
	wrong := ""
	switch q.Kind {
	case Name:
		if q.value = plainName(text); q.value == "" {
			wrong = "a name has letters or digits"
		}
	case Ticker:
		if m := tickerForm.FindStringSubmatch(upper); m != nil {
			q.exchange, q.value = m[1], plainTicker(m[2])
		} else {
			wrong = "not a stock symbol"
		}
	case CIK:
		if q.value = strings.TrimLeft(text, "0"); !cikForm.MatchString(q.value) {
			wrong = "not a Central Index Key"
		}
	case LEI:
		if q.value = upper; !leiForm.MatchString(upper) {
			wrong = "not a Legal Entity Identifier"
		}
	case ISIN:
		if q.value = upper; !isinForm.MatchString(upper) {
			wrong = "not an ISIN"
		}
	}
	if wrong != "" {
		return Query{}, fmt.Errorf("%.60q: %s", text, wrong)
	}
	return q, nil
}

// kindOf tells the kind from the form of a text.
func kindOf(text string) Kind {
	switch {
	case leiForm.MatchString(text):
		return LEI
	case isinForm.MatchString(text):
		return ISIN
	case cikForm.MatchString(text) && strings.Trim(text, "0") != "":
		return CIK
	case looksTicker.MatchString(text):
		return Ticker
	}
	return Name
}

// filerSuffix is what the SEC appends to a name to tell filers apart, such as " /DE/" or "/ADR".
var filerSuffix = regexp.MustCompile(`(?i)\s*[/\\][a-z]{2,4}[/\\]$|\s[/\\][a-z]{2,4}$|/ADR$`)

// plainName is source.PlainName, also without the suffix of a filer.
func plainName(name string) string {
	if bare := source.PlainName(filerSuffix.ReplaceAllString(strings.TrimSpace(name), "")); bare != "" {
		return bare
	}
	return source.PlainName(name)
}

// plainTicker writes a class of shares as BRK-A, in capitals.
func plainTicker(ticker string) string { return strings.ReplaceAll(strings.ToUpper(ticker), ".", "-") }

// exchanges are the codes of Yahoo, which lists of companies use, by the exchange.
var exchanges = map[string]string{"NMS": "NASDAQ", "NGM": "NASDAQ", "NCM": "NASDAQ", "NYQ": "NYSE", "ASE": "AMEX", "PNK": "OTC"}

// plainExchange returns one name for the names of an exchange, in capitals.
func plainExchange(exchange string) string {
	exchange = strings.ToUpper(exchange)
	return cmp.Or(exchanges[exchange], exchange)
}

// Read reads questions: one per line, or one per row of a CSV. A file whose first line names a column name, ticker, cik, lei or isin is a
// CSV; the first such column counts, and a column exchange belongs to a ticker. If asCSV is set a file without such a line is a CSV
// too, and its first column counts. Lines that ask for nothing are faults. Read fails for more than 100,000 lines or 64 MiB, all of
// which are in memory.
func Read(r io.Reader, asCSV bool) ([]Query, []Fault, error) {
	text, err := io.ReadAll(io.LimitReader(r, bytesMax+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > bytesMax {
		return nil, nil, fmt.Errorf("more than %d MiB", bytesMax>>20)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var in input
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if in.header(string(first)) || asCSV {
		err = in.csv(text)
	} else {
		err = in.lines(text)
	}
	return in.queries, in.faults, err
}

// input is what Read has read.
type input struct {
	queries []Query
	faults  []Fault
	// kind and column are those of the column that counts; exchange is the column of exchanges, -1 for none.
	kind             Kind
	column, exchange int
	headed           bool
}

// header reports whether a line is a header, and reads the columns from it.
func (in *input) header(line string) bool {
	in.exchange = -1
	cells, err := csv.NewReader(strings.NewReader(strings.TrimRight(line, "\r"))).Read()
	if err != nil {
		return false
	}
	for i, cell := range cells {
		cell = strings.ToLower(strings.TrimSpace(cell))
		if slices.Contains(kinds, Kind(cell)) && !in.headed {
			in.kind, in.column, in.headed = Kind(cell), i, true
		}
		if cell == exchangeColumn {
			in.exchange = i
		}
	}
	return in.headed
}

func (in *input) lines(text []byte) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if err := in.add(n, string(line), ""); err != nil {
			return err
		}
	}
	return nil
}

func (in *input) csv(text []byte) error {
	rows := csv.NewReader(bytes.NewReader(text))
	rows.FieldsPerRecord, rows.LazyQuotes, rows.ReuseRecord = -1, true, true
	next := 1 // the line after the last row
	if in.headed {
		if _, err := rows.Read(); err != nil {
			return err
		}
		next++
	}
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := rows.FieldPos(0)
		for ; next < line; next++ { // the reader skips empty lines
			if err := in.add(next, "", ""); err != nil {
				return err
			}
		}
		last, _ := rows.FieldPos(len(cells) - 1)
		next = last + 1 + strings.Count(cells[len(cells)-1], "\n")
		cell, exchange := "", ""
		if in.column < len(cells) {
			cell = cells[in.column]
		}
		if in.exchange >= 0 && in.exchange < len(cells) {
			exchange = cells[in.exchange]
		}
		if err := in.add(line, cell, exchange); err != nil {
			return err
		}
	}
}

// add adds the question of one line. It fails if there are too many.
func (in *input) add(line int, text, exchange string) error {
	if len(in.queries)+len(in.faults) == linesMax {
		return fmt.Errorf("more than %d lines", linesMax)
	}
	q, err := Parse(in.kind, text)
	if err != nil {
		in.faults = append(in.faults, Fault{line, err.Error()})
		return nil
	}
	if q.Kind == Ticker && q.exchange == "" {
		q.exchange = strings.ToUpper(scoring.CleanName(exchange))
	}
	q.Line, q.Input = line, strings.Clone(q.Input)
	in.queries = append(in.queries, q)
	return nil
}
