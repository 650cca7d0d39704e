package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Output is the format in which a command prints its result: the value of --output. The zero value is Table. It implements pflag.Value.
type Output string

// The formats. Table is for people and may change. CSV has a row with names.
const (
	Table Output = "table"
	JSON  Output = "json"
	CSV   Output = "csv"
)

var outputs = []string{string(Table), string(JSON), string(CSV)}

// String implements pflag.Value.
func (o *Output) String() string {
	if *o == "" {
		return string(Table)
	}
	return string(*o)
}

// Set implements pflag.Value.
func (o *Output) Set(text string) error {
	for _, known := range outputs {
		if text == known {
			*o = Output(text)
			return nil
		}
	}
	return fmt.Errorf("use %s", strings.Join(outputs, ", "))
}

// ForPeople reports whether the format is Table.
func (o *Output) ForPeople() bool { return o.String() == string(Table) }

// Type implements pflag.Value.
func (o *Output) Type() string { return "format" }

// Flag adds --output, with completion, to a command.
func (o *Output) Flag(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "format of the result: "+strings.Join(outputs, ", "))
	Complete(cmd, "output", outputs...)
}

// JSONFlag adds --json, which means --output json, to a command.
func (o *Output) JSONFlag(cmd *cobra.Command) {
	cmd.Flags().BoolFunc("json", "print JSON, as --output json", func(text string) error {
		asJSON, err := strconv.ParseBool(text)
		if err == nil && asJSON {
			*o = JSON
		}
		return err
	})
}

// Complete sets the values that the shell completes for a flag, also after a comma.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		completions := make([]string, len(values))
		for i, v := range values {
			completions[i] = before + v
		}
		return completions, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic("cli: " + err.Error()) // the flag was added before
	}
}

// CompleteAll is Complete for flags of a command and of all commands below it, by name.
func CompleteAll(cmd *cobra.Command, values map[string][]string) {
	for flag, list := range values {
		if cmd.LocalNonPersistentFlags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil {
			Complete(cmd, flag, list...)
		}
	}
	for _, sub := range cmd.Commands() {
		CompleteAll(sub, values)
	}
}

var _ pflag.Value = (*Output)(nil)

// Column is a column of a list of T.
type Column[T any] struct {
	// Name is the name in CSV, such as created_at. The header of a table is the same in capitals, with spaces.
	Name string
	// Value returns the cell of a row: a text, a number, a bool, a time.Time, a pointer to one of them, or a [Toned] text. Tables show a
	// zero time or a nil pointer as "-", CSV as nothing.
	Value func(T) any
	// Only is Table or CSV for a column that the other does not have.
	Only Output
	// Width is the least number of characters of the column in a table of [Rows].
	Width int
}

// PrintList prints rows: as a table, as one JSON array of the rows as they are, or as CSV.
func PrintList[T any](w io.Writer, o Output, rows []T, columns []Column[T]) error {
	if o == JSON {
		if rows == nil {
			rows = []T{}
		}
		return PrintJSON(w, rows)
	}
	if o == CSV {
		return NewRows(w, o, columns).Print(rows...)
	}
	return printTable(w, rows, columnsOf(Table, columns))
}

// columnsOf returns the columns that a format has.
func columnsOf[T any](o Output, columns []Column[T]) []Column[T] {
	return slices.DeleteFunc(slices.Clone(columns), func(c Column[T]) bool { return c.Only != "" && c.Only != o })
}

// Rows prints rows one at a time, as a table with columns of a fixed least width or as CSV. The names of the columns come before the first
// row.
type Rows[T any] struct {
	w       io.Writer
	csv     bool
	columns []Column[T]
	begun   bool
}

// NewRows returns Rows that print to w.
func NewRows[T any](w io.Writer, o Output, columns []Column[T]) *Rows[T] {
	if o != CSV {
		o = Table
	}
	return &Rows[T]{w: w, csv: o == CSV, columns: columnsOf(o, columns)}
}

// Print prints rows, and the names before the first ones.
func (r *Rows[T]) Print(rows ...T) error {
	first := !r.begun
	r.begun = true
	if r.csv {
		return printCSV(r.w, rows, r.columns, first)
	}
	colours := Colours(r.w)
	if first {
		if err := r.line(titlesOf(r.columns), colours); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if err := r.line(cellsOf(row, r.columns), colours); err != nil {
			return err
		}
	}
	return nil
}

// line prints the cells of one line of a table.
func (r *Rows[T]) line(cells []Toned, colours bool) error {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(c.paint(colours))
		if i < len(cells)-1 {
			width := max(r.columns[i].Width, len(r.columns[i].Name))
			b.WriteString(strings.Repeat(" ", max(0, width-utf8.RuneCountInString(c.Text))+columnGap))
		}
	}
	_, err := fmt.Fprintln(Control(r.w), b.String())
	return err
}

// columnGap is the number of spaces between the columns of a table.
const columnGap = 2

// PrintRecord prints one record: as a sentence for people, as a JSON object, or as CSV with one row.
func PrintRecord[T any](w io.Writer, o Output, record T, sentence string, columns []Column[T]) error {
	switch o {
	case JSON:
		return PrintJSON(w, record)
	case CSV:
		return PrintList(w, CSV, []T{record}, columns)
	}
	_, err := fmt.Fprintln(NewPrinted(w), sentence)
	return err
}

// PrintJSON prints a value as one line.
func PrintJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// dereference returns the value of a pointer to a cell, nil for a nil pointer.
func dereference(cell any) any {
	switch v := cell.(type) {
	case *time.Time:
		if v != nil {
			return *v
		}
	case *string:
		if v != nil {
			return *v
		}
	case *float64:
		if v != nil {
			return *v
		}
	case *int64:
		if v != nil {
			return *v
		}
	default:
		return cell
	}
	return nil
}

// titlesOf returns the header of a table.
func titlesOf[T any](columns []Column[T]) []Toned {
	titles := make([]Toned, len(columns))
	for i, c := range columns {
		titles[i] = Toned{strings.ToUpper(strings.ReplaceAll(c.Name, "_", " ")), Bold}
	}
	return titles
}

// printCSV prints rows, with names before them.
func printCSV[T any](w io.Writer, rows []T, columns []Column[T], names bool) error {
	out := csv.NewWriter(w)
	texts := make([]string, len(columns))
	if names {
		for i, c := range columns {
			texts[i] = c.Name
		}
		if err := out.Write(texts); err != nil {
			return err
		}
	}
	for _, row := range rows {
		for i, c := range columns {
			texts[i] = exact(dereference(c.Value(row)))
		}
		if err := out.Write(texts); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// exact returns a cell as text for CSV.
func exact(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		return strconv.FormatFloat(v.Seconds(), 'f', -1, 64)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case Toned:
		return v.Text
	}
	return fmt.Sprint(cell)
}

// printTable aligns the cells of each column to the left.
func printTable[T any](w io.Writer, rows []T, columns []Column[T]) error {
	colours := Colours(w)
	out := tabwriter.NewWriter(Control(w), 0, 0, columnGap, ' ', 0)
	line := func(cells []Toned) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = c.paint(colours)
		}
		fmt.Fprintln(out, strings.Join(texts, "\t"))
	}
	line(titlesOf(columns))
	for _, row := range rows {
		line(cellsOf(row, columns))
	}
	return out.Flush()
}

// cellsOf returns the cells of a row of a table.
func cellsOf[T any](row T, columns []Column[T]) []Toned {
	cells := make([]Toned, len(columns))
	for i, c := range columns {
		cells[i] = human(dereference(c.Value(row)))
	}
	return cells
}

// human returns a cell as text for people.
func human(cell any) Toned {
	switch v := cell.(type) {
	case nil:
		return Toned{Text: "-"}
	case time.Time:
		if v.IsZero() {
			return Toned{Text: "-"}
		}
		return Toned{Text: v.UTC().Format(time.DateTime)}
	case float64:
		return Toned{Text: strconv.FormatFloat(v, 'f', 1, 64)}
	case Toned:
		return Toned{Printable(v.Text), v.Tone}
	}
	return Toned{Text: Printable(fmt.Sprint(cell))}
}
