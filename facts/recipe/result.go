package recipe

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"companyscore/facts"
	"companyscore/scoring"
)

// Columns of a result that an import file does not have.
const (
	unmatchedColumn = "unmatched"
	subjectColumn   = "subject"
)

// result is the result of a recipe as a source of an import: the rows that match a company.
type result struct {
	*facts.Reader
	list      *csv.Writer       // of unmatched rows
	unmatched map[string]uint64 // rows by reason
	refused   Refused
}

const (
	// reasonsMax is the number of reasons that are counted apart. Rows with other ones count as reasonOther.
	reasonsMax  = 100
	reasonOther = "other reasons"
	// faultsMax is the number of faults in a Refused.
	faultsMax = 100
)

// openResult opens the result of a recipe. unmatched gets the rows that match no company; it may be nil. The caller calls Close.
func openResult(path string, unmatched io.Writer) (*result, error) {
	reader, err := facts.OpenWith(path, unmatchedColumn, subjectColumn, "domain")
	if err != nil {
		return nil, fmt.Errorf("the result of the recipe: %w", err)
	}
	for _, column := range reader.Columns() {
		if column != unmatchedColumn && column != subjectColumn && !facts.Known(column) {
			return nil, errors.Join(fmt.Errorf("the result of the recipe has a column %q that no import file has", column), reader.Close())
		}
	}
	if unmatched == nil {
		unmatched = io.Discard
	}
	r := &result{Reader: reader, list: csv.NewWriter(unmatched), unmatched: map[string]uint64{}}
	_ = r.list.Write([]string{subjectColumn, "reason"}) // the error is that of list.Error
	return r, nil
}

// Next returns the facts of the next row that matches a company. From the first fault on it only reads the other rows, and returns a
// *Refused at the end.
func (r *result) Next() (scoring.CompanyFacts, error) {
	for {
		company, err := r.Reader.Next()
		reason := r.Text(unmatchedColumn)
		fault, isFault := errors.AsType[facts.Fault](err)
		switch {
		case errors.Is(err, io.EOF):
			return company, r.end()
		case err != nil && !isFault:
			return company, fmt.Errorf("the result of the recipe: %w", err)
		case reason != "":
			if err := r.list.Write([]string{r.Text(subjectColumn), reason}); err != nil {
				return company, fmt.Errorf("write unmatched rows: %w", err)
			}
			if r.unmatched[reason] == 0 && len(r.unmatched) >= reasonsMax {
				reason = reasonOther
			}
			r.unmatched[reason]++
		case isFault:
			r.refuse(fault)
		case r.refused.Faults == nil:
			return company, nil
		}
	}
}

// refuse notes a fault of the last row.
func (r *result) refuse(fault facts.Fault) {
	if len(r.refused.Faults) >= faultsMax {
		r.refused.Omitted++
		return
	}
	about := slices.Compact([]string{r.Text("domain"), r.Text(subjectColumn), fault.Field})
	about = slices.DeleteFunc(about, func(s string) bool { return s == "" })
	r.refused.Faults = append(r.refused.Faults, fmt.Sprintf("line %d of the result: %s: %s", fault.Line,
		strings.Join(about, ", "), fault.Reason))
}

// end returns the error of the end of the result.
func (r *result) end() error {
	if r.list.Flush(); r.list.Error() != nil {
		return fmt.Errorf("write unmatched rows: %w", r.list.Error())
	}
	if r.refused.Faults != nil {
		return &r.refused
	}
	return io.EOF
}
