package config

import "strings"

// maxGuesses bounds how many mistakes have a guess at what was meant: it costs
// a comparison with every word, and whoever writes the document chooses both.
const maxGuesses = 100

// nearest is the function of that name, for the first mistakes of r.
func (r *reader) nearest(key string, words []string) string {
	if len(r.mistakes) >= maxGuesses {
		return ""
	}
	return nearest(key, words)
}

// nearest returns the word that key is most likely a slip of, or "".
func nearest(key string, words []string) string {
	if key == "" || len(key) > 64 {
		return ""
	}
	best, least := "", 1+min(3, max(1, len(key)/3))
	for _, w := range words {
		if d := distance(strings.ToLower(key), strings.ToLower(w)); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions and replacements of one byte that
// turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
