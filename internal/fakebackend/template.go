package fakebackend

import (
	"encoding/json"
	"strings"
)

// The words that a template replaces. $id is the request's id as it was sent,
// $version its protocolVersion as a JSON string.
const (
	idWord      = "$id"
	versionWord = "$version"
)

// template is a body with replaceable words, cut into pieces once.
type template []string

func newTemplate(text string) template {
	var t template
	for {
		id, version := strings.Index(text, idWord), strings.Index(text, versionWord)
		switch {
		case id < 0 && version < 0:
			return append(t, text)
		case version < 0 || id >= 0 && id < version:
			t = append(t, text[:id], idWord)
			text = text[id+len(idWord):]
		default:
			t = append(t, text[:version], versionWord)
			text = text[version+len(versionWord):]
		}
	}
}

// append adds the body that answers m to dst.
func (t template) append(dst []byte, m Message) []byte {
	for _, piece := range t {
		switch piece {
		case idWord:
			if len(m.ID) == 0 {
				dst = append(dst, "null"...)
				continue
			}
			dst = append(dst, m.ID...)
		case versionWord:
			if m.Version == "draft" || m.Version == "0.1" {
				dst = append(append(append(dst, '"'), m.Version...), '"')
				continue
			}
			quoted, _ := json.Marshal(m.Version)
			dst = append(dst, quoted...)
		default:
			dst = append(dst, piece...)
		}
	}
	return dst
}
