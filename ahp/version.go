package ahp

// Version is a protocol snapshot. The zero value is no version.
type Version uint8

// The snapshots this gateway speaks.
const (
	V01   Version = iota + 1 // "0.1", revision 0.1.0-draft.1
	Draft                    // "draft", pinned to the official Python SDK 0.10.1
)

// Versions lists the supported snapshots, oldest first.
var Versions = [...]Version{V01, Draft}

// String returns the value of protocolVersion on the wire, or "unknown".
func (v Version) String() string {
	switch v {
	case V01:
		return "0.1"
	case Draft:
		return "draft"
	default:
		return "unknown"
	}
}

// ParseVersion returns the snapshot that s names exactly. AHP-VER-001.
func ParseVersion(s string) (v Version, ok bool) {
	switch s {
	case "0.1":
		return V01, true
	case "draft":
		return Draft, true
	default:
		return 0, false
	}
}
