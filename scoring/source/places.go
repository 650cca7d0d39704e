package source

import (
	_ "embed"
	"encoding/csv"
	"slices"
	"strings"

	"companyscore/internal/country"
	"companyscore/scoring"
)

// placesCSV maps names in lower case to an ISO 3166-1 code, to a region of package scoring, or to
// "remote". EMEA is in Europe, where most of its roles are.
//
//go:embed places.csv
var placesCSV string

// remotePlace is the place of all roles without a fixed place.
const remotePlace = "remote"

// places is placesCSV by name. remoteNames are the names that mean remotePlace.
var places, remoteNames = func() (map[string]string, []string) {
	byName := make(map[string]string)
	var remote []string
	for _, row := range table(placesCSV, 2) {
		byName[row[0]] = row[1]
		if row[1] == remotePlace {
			remote = append(remote, row[0])
		}
	}
	return byName, remote
}()

// table returns the rows of an embedded CSV file without its header. It panics if a row does not
// have the given number of columns.
func table(text string, columns int) [][]string {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = columns
	rows, err := r.ReadAll()
	if err != nil {
		panic("source: embedded table: " + err.Error())
	}
	return rows[1:]
}

// splitPlaces returns the places in a location, such as "Oslo, Norway | Remote". Commas, and what
// is in parentheses, belong to one place.
func splitPlaces(text string) []string {
	var found []string
	depth := 0
	for _, part := range strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		}
		return depth == 0 && strings.ContainsRune("|;•·\n", r)
	}) {
		if isRemote(part) || strings.ContainsRune(part, '(') {
			found = append(found, part)
			continue
		}
		found = append(found, strings.Split(strings.ReplaceAll(part, " / ", " or "), " or ")...)
	}
	return found
}

func isRemote(place string) bool {
	place = strings.ToLower(place)
	return slices.ContainsFunc(remoteNames, func(name string) bool { return strings.Contains(place, name) })
}

// placeKey returns the form in which places are counted. All remote places are one.
func placeKey(place string) string {
	if isRemote(place) {
		return remotePlace
	}
	return strings.ToLower(place)
}

// regionsOf returns the world regions of a role's places, or if they tell none, of its country.
func regionsOf(r role) []string {
	var found []string
	for _, place := range r.Places {
		for part := range strings.SplitSeq(place, " or ") {
			if region := regionOf(part); region != "" {
				found = append(found, region)
			}
		}
	}
	if region := regionOf(r.Country); len(found) == 0 && region != "" {
		found = append(found, region)
	}
	return found
}

// regionOf returns the world region of a place, "" if it is unknown. The last part of a place is
// the widest: Portland, OR, United States.
func regionOf(place string) string {
	parts := strings.FieldsFunc(place, func(r rune) bool { return strings.ContainsRune(",;:/|()-–—", r) })
	named := func(i int) string { return places[strings.ToLower(strings.Trim(parts[i], " ."))] }
	for i := len(parts) - 1; i >= 0; i-- {
		part := strings.Trim(parts[i], " .")
		code := named(i)
		switch {
		case len(part) == 2 && i > 0 && slices.Contains(secStates, part) && named(i-1) != part:
			code = "US" // as in "San Francisco, CA", but not in "Berlin, DE"
		case code == remotePlace:
			continue
		case code == "":
			code = country.Code(part)
		case code == strings.ToLower(code):
			return code // a region
		}
		if region := scoring.RegionOf(code); region != scoring.Unknown {
			return region
		}
	}
	return ""
}
