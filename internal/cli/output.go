package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

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
}

// PrintList prints rows: as a table, as one JSON array of the rows as they are, or as CSV.
func PrintList[T any](w io.Writer, o Output, rows []T, columns []Column[T]) error {
	if o == JSON {
		if rows == nil {
			rows = []T{}
		}
		return PrintJSON(w, rows)
	}
	var names []string
	var shown []Column[T]
	for _, c := range columns {
		if c.Only == "" || c.Only == o || c.Only == Table && o == "" {
			names, shown = append(names, c.Name), append(shown, c)
		}
	}
	cells := make([][]any, len(rows))
	for i, row := range rows {
		for _, c := range shown {
			cells[i] = append(cells[i], dereference(c.Value(row)))
		}
	}
	if o == CSV {
		return printCSV(w, names, cells)
	}
	return printTable(w, names, cells)
}

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

func printCSV(w io.Writer, names []string, rows [][]any) error {
	out := csv.NewWriter(w)
	if err := out.Write(names); err != nil {
		return err
	}
	for _, row := range rows {
		texts := make([]string, len(row))
		for i, cell := range row {
			switch v := cell.(type) {
			case nil:
			case time.Time:
				if !v.IsZero() {
					texts[i] = v.UTC().Format(time.RFC3339Nano)
				}
			case time.Duration:
				texts[i] = strconv.FormatFloat(v.Seconds(), 'f', -1, 64)
			case float64:
				texts[i] = strconv.FormatFloat(v, 'f', -1, 64)
			case Toned:
				texts[i] = v.Text
			default:
				texts[i] = fmt.Sprint(v)
			}
		}
		if err := out.Write(texts); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// printTable aligns the cells of each column to the left.
func printTable(w io.Writer, names []string, rows [][]any) error {
	colours := Colours(w)
	out := tabwriter.NewWriter(Control(w), 0, 0, 2, ' ', 0)
	for i, name := range names {
		names[i] = Toned{strings.ToUpper(strings.ReplaceAll(name, "_", " ")), Bold}.paint(colours)
	}
	fmt.Fprintln(out, strings.Join(names, "\t"))
	for _, row := range rows {
		texts := make([]string, len(row))
		for i, cell := range row {
			texts[i] = human(cell).paint(colours)
		}
		fmt.Fprintln(out, strings.Join(texts, "\t"))
	}
	return out.Flush()
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
