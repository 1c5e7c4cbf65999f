package setting

import (
	"strings"
)

// Nearest gives the known name that a typo most likely meant, or nothing.
func Nearest(name string, known []string) string {
	best, dist := "", 1+max(2, len(name)/3)
	if len(name) > 64 {
		return ""
	}
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < dist && d < len(k) {
			best, dist = k, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diag, row[j+1] = row[j+1], min(diag+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
