package facts

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func FuzzFactsCSV(f *testing.F) {
	f.Add("domain,employees\nexample.com,12\n")
	f.Add("domain,categories,as_of\nwww.example.com,a|b,2025-01-01\n\"x\n")
	f.Add("domain,signal:open_roles\nexample.com,1e400\n")
	f.Fuzz(func(t *testing.T, text string) { readAll(t, "f.csv", text) })
}

func FuzzFactsJSONL(f *testing.F) {
	f.Add(`{"domain":"example.com","employees":12}`)
	f.Add(`{"domain":["a","b"],"city":{}}`)
	f.Add("{}\n[]\nnull\n")
	f.Fuzz(func(t *testing.T, text string) { readAll(t, "f.jsonl", text) })
}

func FuzzFactsParquet(f *testing.F) {
	type row struct {
		Domain    string   `parquet:"domain"`
		Employees *int64   `parquet:"employees,optional"`
		Labels    []string `parquet:"categories,list"`
		AsOf      int32    `parquet:"as_of,date"`
	}
	var file bytes.Buffer
	if err := parquet.Write(&file, []row{{Domain: "a.com", Labels: []string{"x", "y"}}, {Domain: "b.com", AsOf: 20_000}}); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) { readAll(t, "f.parquet", string(data)) })
}

// readAll reads a table as an import does. Every row must be valid and within bounds, or a
// fault with a line.
func readAll(t *testing.T, name, text string) {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := Open(path)
	if err != nil {
		return
	}
	defer reader.Close()
	for {
		row, err := reader.Next()
		var fault Fault
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.As(err, &fault):
			if fault.Line < 1 || fault.Reason == "" {
				t.Fatalf("fault without a place or reason: %+v", fault)
			}
		case err != nil && strings.HasSuffix(name, ".parquet"):
			return // damaged
		case err != nil:
			t.Fatalf("the import of a readable file stopped: %v", err)
		case row.Domain == "":
			t.Fatal("a row without a domain went through")
		case row.Employees != nil && (math.IsNaN(*row.Employees) || *row.Employees < 0):
			t.Fatalf("headcount %v went through", *row.Employees)
		}
	}
}
