package ahp

// Strict reports whether b is one JSON text as every decoder of this package
// wants it: UTF-8, unique member names, no lone surrogates, nested at most
// MaxDepth deep. It is for JSON that travels inside of a string.
func Strict(b []byte) bool {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.reset(b)
	ok := s.scan(nodeOpaque)
	s.b = nil
	return ok
}

// IsURI reports whether s is an absolute URI by the grammar of RFC 3986.
func IsURI(s []byte) bool { return isURI(s) }

// IsDateTime reports whether s is a date-time of RFC 3339.
func IsDateTime(s []byte) bool { return isDateTime(s) }
