package ahp

// Selection is how much of a content part a subscription may see.
type Selection uint8

// The selections, from most to least. The zero value selects nothing and is invalid.
const (
	SelectBody Selection = iota + 1
	SelectMetadata
	SelectOmit
)

// ParseSelection returns the selection that s names.
func ParseSelection(s string) (sel Selection, ok bool) {
	switch s {
	case "body":
		return SelectBody, true
	case "metadata":
		return SelectMetadata, true
	case "omit":
		return SelectOmit, true
	default:
		return 0, false
	}
}

// String returns the selection's name on the wire, or "unknown".
func (s Selection) String() string {
	switch s {
	case SelectBody:
		return "body"
	case SelectMetadata:
		return "metadata"
	case SelectOmit:
		return "omit"
	default:
		return "unknown"
	}
}

// ContentSelection is a subscription's content member: a default and, for
// named categories, something else. The zero value is that of a 0.1
// subscription, which has no content selection and sees whole events.
type ContentSelection struct {
	Default    Selection
	Categories map[string]Selection
}

// Of returns the selection of a category.
func (c ContentSelection) Of(category string) Selection {
	if s, ok := c.Categories[category]; ok {
		return s
	}
	return c.Default
}

// MayHide reports whether a harness that shows the raw part as c selects it may
// have more of it: what shows less than was selected is all there is.
func (c ContentSelection) MayHide(raw []byte) bool {
	if c.Default == 0 {
		return false
	}
	p := readPart(raw)
	selected := c.Of(p.categoryOf())
	return selected != SelectBody && p.selection == selected
}
