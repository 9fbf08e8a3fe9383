package ahp

// Response is a backend's answer to one hooks/intercept. The zero value is
// ready; Reset keeps the buffer for reuse.
type Response struct {
	// Body is the whole answer. The Backend fills it; everything below points into it.
	Body []byte
	// Effects is the raw JSON array of result.effects, or nil where the member
	// is absent, which draft reads as none.
	Effects []byte
}

// Reset empties r and keeps its buffer.
func (r *Response) Reset() { r.Body, r.Effects = r.Body[:0], nil }
