package domainname

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// lineMaxBytes bounds a line of a list of domains.
const lineMaxBytes = 64 << 10

// ReadFile reads domains from a file: the column "domain" of a .csv file, or
// the first word of each line of any other. The path "-" is standard input.
// Empty lines and lines that begin with # are passed over.
func ReadFile(path string, stdin io.Reader) ([]string, error) {
	if path == "-" {
		return readLines(stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var domains []string
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		domains, err = readColumn(f)
	} else {
		domains, err = readLines(f)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return domains, nil
}

func readLines(r io.Reader) ([]string, error) {
	var domains []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineMaxBytes)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			domains = append(domains, words[0])
		}
	}
	return domains, lines.Err()
}

func readColumn(r io.Reader) ([]string, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read column names: %w", err)
	}
	column := slices.Index(head, "domain")
	if column < 0 {
		return nil, errors.New(`no column "domain" in the first line`)
	}
	var domains []string
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return domains, nil
		}
		if err != nil {
			return nil, err
		}
		if row[column] != "" {
			domains = append(domains, strings.Clone(row[column]))
		}
	}
}

// ParseAll returns each domain once, in its canonical spelling and in
// the order of their first appearance. The error joins all that are none.
func ParseAll(raw []string) ([]string, error) {
	var domains []string
	var faults []error
	seen := make(map[string]bool, len(raw))
	for _, text := range raw {
		domain, err := Parse(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%q: %w", text, err))
			continue
		}
		if !seen[domain] {
			seen[domain] = true
			domains = append(domains, domain)
		}
	}
	return domains, errors.Join(faults...)
}
