//go:build !amd64

package ahp

// marks has a bit for each byte of b that is special (a quote, a backslash or a
// control character), and one for each that is beyond ASCII, the first byte's
// lowest.
func marks(b *[64]byte) (special, foreign uint64) {
	return marksInGo(b)
}
