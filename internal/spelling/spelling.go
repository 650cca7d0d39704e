// Package spelling compares names, to suggest the one that was meant.
package spelling

// comparedMax bounds the bytes of a name that are compared.
const comparedMax = 64

// Distance returns the number of bytes to insert, remove or replace in a to get b (Levenshtein
// distance). It compares the first 64 bytes of each.
func Distance(a, b string) int {
	a, b = a[:min(len(a), comparedMax)], b[:min(len(b), comparedMax)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
