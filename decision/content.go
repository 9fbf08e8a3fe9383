package decision

import "github.com/ahp-gateway/ahp-gateway/ahp"

// pending is what the pinned snapshot's harness calls attachments that it has
// not uploaded yet. No event may hold it.
const pending = "ahp:owned:pending"

// areTexts reports whether a list of text parts is one whose parts all show
// their text. Compaction takes and gives nothing else.
func areTexts(list []byte) bool {
	if ahp.KindOf(list) != ahp.KindArray {
		return false
	}
	for e := range ahp.Elements(list) {
		if string(ahp.Text(ahp.Member(e, "kind"))) != "text" || ahp.KindOf(ahp.Member(e, "text")) != ahp.KindString {
			return false
		}
	}
	return true
}

// anyPart reports whether a list of messages or parts has a part of which is
// is true.
func anyPart(list []byte, is func(part []byte) bool) bool {
	for e := range ahp.Elements(list) {
		if parts := ahp.Member(e, "parts"); parts != nil {
			if anyPart(parts, is) {
				return true
			}
		} else if is(e) {
			return true
		}
	}
	return false
}

// hides reports whether a list of messages or parts has a part whose body is
// not shown.
func hides(list []byte) bool {
	return anyPart(list, func(part []byte) bool { return string(ahp.Text(ahp.Member(part, "selection"))) != "body" })
}

// waits reports whether a list of messages or parts has an attachment that was
// not uploaded.
func waits(list []byte) bool {
	return anyPart(list, func(part []byte) bool {
		return string(ahp.Text(ahp.Member(ahp.Member(part, "body"), "ref"))) == pending
	})
}
