// Package examples has the example companies, which the console can import.
package examples

import _ "embed"

// Companies is a CSV file of facts of 880 real companies. README.md has its origin.
//
//go:embed companies.csv
var Companies []byte
