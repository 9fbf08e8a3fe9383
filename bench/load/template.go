package load

import (
	"bytes"
	"fmt"
	"strconv"
)

// Placeholder stands for the event id in the body of a Template. An id has as
// many digits as it has characters.
const Placeholder = "@@@@@@@@@@@@"

// Template is one HTTP/1.1 request, the same each time but for its event id.
type Template struct {
	raw    []byte
	places []int // of the placeholders
}

// NewTemplate returns a POST of body to the path of host; headers are whole
// lines without their ends.
func NewTemplate(host, path string, body []byte, headers ...string) *Template {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, host, len(body))
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	b.WriteString("\r\n")
	b.Write(body)
	t := &Template{raw: b.Bytes()}
	for at := 0; ; at += len(Placeholder) {
		i := bytes.Index(t.raw[at:], []byte(Placeholder))
		if i < 0 {
			return t
		}
		at += i
		t.places = append(t.places, at)
	}
}

// identify writes an id into a copy of t's request.
func (t *Template) identify(request []byte, id uint64) {
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], id, 10)
	for _, at := range t.places {
		field := request[at : at+len(Placeholder)]
		for i := range field {
			field[i] = '0'
		}
		copy(field[max(0, len(field)-len(text)):], text)
	}
}
