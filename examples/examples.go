// Package examples has facts of real companies. README.md has their origins and licences.
package examples

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
)

// File is a file with the columns of an import.
type File struct {
	Name string
	Text []byte
}

var (
	//go:embed companies.csv
	companies []byte
	//go:embed listed.csv
	listed []byte
	//go:embed bulk/facts.csv
	bulk []byte
)

// Companies has facts of 880 companies, which the console can import.
var Companies = File{"companies.csv", companies}

// Files are all files about companies of today: Companies, 20,863 listed companies, and facts of
// public files about both. Callers must not change the texts.
var Files = []File{Companies, {"listed.csv", listed}, {"facts.csv", bulk}}

// Domains returns the companies of files, sorted.
func Domains(files ...File) (domains []string) {
	for _, f := range files {
		rows := csv.NewReader(bytes.NewReader(f.Text))
		rows.ReuseRecord = true
		head, err := rows.Read()
		column := slices.Index(head, "domain")
		for err == nil {
			var row []string
			if row, err = rows.Read(); err == nil {
				domains = append(domains, strings.Clone(row[column]))
			}
		}
		if !errors.Is(err, io.EOF) {
			panic("examples: read " + f.Name + ": " + err.Error()) // cannot happen, the file is embedded
		}
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}
