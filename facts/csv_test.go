package facts

import (
	"errors"
	"fmt"
	"io"
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
