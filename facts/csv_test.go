package facts

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestCSVSkipsOnlyInvalidRows(t *testing.T) {
	t.Parallel()
	f := func(text string, want ...string) {
		t.Helper()
		table, err := newCSVTable(io.NopCloser(strings.NewReader(text)), int64(len(text)), false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			line, cells, err := table.next()
			if errors.Is(err, io.EOF) {
				break
			}
			var fault Fault
			if errors.As(err, &fault) {
				got = append(got, fmt.Sprintf("fault %d:%d", fault.Line, fault.Column))
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d %q", line, cells[1].text))
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("rows of %.60q:\n got %q\nwant %q", text, got, want)
		}
	}
	const head = "domain,city\n"
	f(head+"a.com,A\nb.com,\"open\nc.com,C\nd.com,\"D, d\"\ne.com,E\n", `2 "A"`, "fault 3:7", `4 "C"`, `5 "D, d"`, `6 "E"`)
	f(head+"a.com,\"open\nb.com,\"open\nc.com,C", "fault 2:0", "fault 3:7", `4 "C"`)
	f(head+"a.com,\"two\nlines\"\r\n\r\nb.com,B\r\n", `2 "two\nlines"`, `5 "B"`)
	f(head+"a.com,\"a \"\"quoted\"\" word\"\nb.com,B", `2 "a \"quoted\" word"`, `3 "B"`)
	f(head+"a.com,b\"c\nb.com,B", "fault 2:8", `3 "B"`)
	f(head+strings.Repeat("x", 3*rowMaxBytes)+"\nb.com,B", "fault 2:0", `3 "B"`)
	f(head+"a.com,\"open\n"+strings.Repeat("b.com,B\n", 1<<18)+"c.com,C", append(append([]string{"fault 2:7"}, rowsB(3, 1<<18)...),
		fmt.Sprintf("%d %q", 3+(1<<18), "C"))...)
	f("\uFEFF"+head+"a.com,A,x\nb.com,B", "fault 2:0", `3 "B"`)
}

func rowsB(line, n int) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("%d %q", line+i, "B")
	}
	return rows
}

// TestPlainRowsAreThoseOfEncodingCSV compares rows with those of the standard library.
func TestPlainRowsAreThoseOfEncodingCSV(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a,b", "a,b\n", "a,b\r\n", ",\n", "a,\n", `"a","b"` + "\n", `"a,""b""","",x` + "\n", `""` + "\n", `"a"` + "\r\n",
		"a \"b\n", `"a"b,c`, `"a`, `"a""`, `a,"b" ,c`, "a\rb,c\n", "\n", "\r\n", `"""",""""""`, `a,"b`, "ä,\"ö\"\n", `,"",`} {
		c := &csvTable{}
		plain := c.splitPlain([]byte(text), 1)
		in := csv.NewReader(strings.NewReader(text))
		values, err := in.Read()
		if !plain {
			continue // the table asks encoding/csv
		}
		var got []string
		for i, cell := range c.cells {
			got = append(got, cell.text)
			if line, column := in.FieldPos(i); err == nil && (line != cell.line || column != cell.column) {
				t.Errorf("%q: value %d stands at %d:%d, want %d:%d", text, i, cell.line, cell.column, line, column)
			}
		}
		if err != nil || !slices.Equal(got, values) {
			t.Errorf("%q = %q, want %q, %v", text, got, values, err)
		}
	}
}

func FuzzPlainRows(f *testing.F) {
	f.Add(`"a,""b""","",x` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := &csvTable{}
		if !c.splitPlain([]byte(text), 1) {
			return
		}
		values, err := csv.NewReader(strings.NewReader(text)).Read()
		if err != nil || len(values) != len(c.cells) {
			t.Fatalf("%q: %d values, want %q, %v", text, len(c.cells), values, err)
		}
		for i, cell := range c.cells {
			if cell.text != values[i] {
				t.Errorf("%q: value %d is %q, want %q", text, i, cell.text, values[i])
			}
		}
	})
}
