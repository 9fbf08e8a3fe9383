package ahp

// shape says what a JSON value of draft has to look like. Shapes are data:
// package variables that are built once and never change, read by a walker
// against messages, and by a test that writes the JSON Schemas from them.
type shape struct {
	// name is that of a shape with a place of its own among the schemas, and
	// about is its description there.
	name, about string
	kind        shapeKind
	// what completes "params.… is no" where a value is not of the kind.
	what string

	values  []string // of an enumeration, in the order of their bits
	open    bool     // other texts of the kind are fine too, without a bit
	shift   uint8    // where the bits of values begin
	atLeast int      // the least number, or the least length of a list

	elem   *shape // of a list
	unique bool   // the texts of a list differ

	members []member
	closed  bool   // no members but these
	others  *shape // what unknown members must be
	dotted  bool   // names are reverse-DNS names
	filled  bool   // at least one member
	rules   []rule
	slots   int // how many members are remembered for rules

	choices []*shape // of which a value's own kind picks one

	part bool // a content part
}

// shapeKind is how a shape is read.
type shapeKind uint8

const (
	shapeAny shapeKind = iota
	shapeNever
	shapeNull
	shapeText     // a string, also an empty one
	shapeFilled   // a string that is not empty
	shapeEnum     // one of values; where open, any other string that is not empty
	shapeDotted   // one of values, or a reverse-DNS name
	shapeURI      // an absolute URI
	shapeHTTPURL  // one of http or https
	shapeDateTime // RFC 3339
	shapeCurrency // three capital letters
	shapeSHA256   // in lower-case hexadecimal
	shapeMedia    // text/plain, or the media type of an attachment
	shapeScheme   // one of values, or an underscore and something behind it
	shapeBool
	shapeTrue
	shapeWhole  // an integer of at least atLeast, in any notation
	shapeNumber // of at least 0
	shapeAnyNumber
	shapeAnyWhole
	shapeList
	shapeObject
	shapeChoice
)

// The bits that values without an enumeration have for rules.
const (
	bitTrue  = 1 << 0
	bitFalse = 1 << 1

	bitPlain      = 1 << 0 // text/plain
	bitAttachment = 1 << 1

	bitOther = 1 << 63 // an open enumeration's other text
)

// member is one known member of an object.
type member struct {
	name     string
	shape    *shape
	required bool
	// read is set where the decoder has checked the member before: the walker
	// passes over it.
	read bool
	// shown makes the member's bits those of the object too.
	shown bool
	slot  int8 // where the member is remembered, from 1, or 0
}

// rule is a condition that members of one object put on one another. It binds
// where all of when hold.
type rule struct {
	when []cond
	need []string // these members are there
	ban  []string // these are not
	one  []string // exactly one of these is
	must []cond   // these hold
	// as is a shape that a member has to have, if it is there.
	as      *shape
	asOf    string
	because string // what the refusal says

	needed, banned, ones uint32
	ofAs                 int8
}

// cond is a condition on one member: it is there and has one of the bits or,
// where bits is 0, just is there. not turns that round.
type cond struct {
	member string
	bits   uint64
	not    bool

	index int8
}

var (
	anything  = &shape{}
	never     = &shape{kind: shapeNever}
	null      = &shape{kind: shapeNull, what: "null"}
	text      = &shape{kind: shapeText, what: "string"}
	filled    = &shape{kind: shapeFilled, what: "non-empty string"}
	boolean   = &shape{kind: shapeBool, what: "boolean"}
	literally = &shape{kind: shapeTrue, what: "true"}
	count     = &shape{kind: shapeWhole, what: "integer of at least 0"}
	positive  = &shape{kind: shapeWhole, what: "integer of at least 1", atLeast: 1}
	integer   = &shape{kind: shapeAnyWhole, what: "integer"}
	amount    = &shape{kind: shapeNumber, what: "number of at least 0"}
	number    = &shape{kind: shapeAnyNumber, what: "number"}
	absolute  = &shape{kind: shapeURI, what: "absolute URI"}
	httpURL   = &shape{kind: shapeHTTPURL, what: "absolute URI of http or https"}
	dateTime  = &shape{kind: shapeDateTime, what: "RFC 3339 date-time"}
	dotted    = &shape{kind: shapeDotted, what: "reverse-DNS name"}
	currency  = &shape{kind: shapeCurrency, what: "currency of three capital letters"}
	digest    = &shape{kind: shapeSHA256, what: "SHA-256 in lower-case hexadecimal"}
	mediaType = &shape{kind: shapeMedia, what: "media type of a text or an attachment"}
	opaque    = object()
)

// enum is one of some texts; the first has bit 0.
func enum(values ...string) *shape { return &shape{kind: shapeEnum, values: values} }

// bits returns those of some values of an enumeration.
func (s *shape) bits(values ...string) uint64 {
	var bits uint64
	for _, v := range values {
		found := false
		for i, known := range s.values {
			if v == known {
				bits |= 1 << (int(s.shift) + i)
				found = true
			}
		}
		if !found {
			panic("ahp: " + v + " is no value of the enumeration")
		}
	}
	return bits
}

func (s *shape) shifted(by uint8) *shape { s.shift = by; return s }

func list(elem *shape) *shape { return &shape{kind: shapeList, what: "list", elem: elem} }

// set is a list of texts that differ.
func set(elem *shape) *shape { return &shape{kind: shapeList, what: "list", elem: elem, unique: true} }

func (s *shape) some() *shape { s.atLeast = 1; return s }

func choice(what string, of ...*shape) *shape {
	return &shape{kind: shapeChoice, what: what, choices: of}
}

// object is an object with these members and any others.
func object(members ...member) *shape {
	return &shape{kind: shapeObject, what: "object", members: members}
}

// closed is an object with these members and no others.
func closed(members ...member) *shape {
	s := object(members...)
	s.closed = true
	return s
}

func need(name string, s *shape) member { return member{name: name, shape: s, required: true} }
func opt(name string, s *shape) member  { return member{name: name, shape: s} }
func ban(name string) member            { return member{name: name, shape: never} }

func (m member) asRead() member  { m.read = true; return m }
func (m member) asShown() member { m.shown = true; return m }

// named gives a shape its place among the schemas.
func (s *shape) named(name, about string) *shape { s.name, s.about = name, about; return s }

func (s *shape) with(others *shape) *shape { s.others = others; return s }

// obeying adds rules to an object.
func (s *shape) obeying(rules ...rule) *shape {
	for _, r := range rules {
		r.needed, r.banned, r.ones = s.set(r.need), s.set(r.ban), s.set(r.one)
		r.when, r.must = s.remember(r.when), s.remember(r.must)
		if r.asOf != "" {
			r.ofAs = s.slotOf(r.asOf)
		}
		s.rules = append(s.rules, r)
	}
	return s
}

func (s *shape) index(name string) int {
	for i := range s.members {
		if s.members[i].name == name {
			return i
		}
	}
	panic("ahp: no member " + name)
}

func (s *shape) set(names []string) uint32 {
	var set uint32
	for _, name := range names {
		set |= 1 << s.index(name)
	}
	return set
}

// slotOf gives a member a slot, so that its bits and its place are remembered
// until the rules are looked at.
func (s *shape) slotOf(name string) int8 {
	m := &s.members[s.index(name)]
	if m.slot == 0 {
		if s.slots++; s.slots > maxSlots || m.read {
			panic("ahp: " + name + " cannot be remembered")
		}
		m.slot = int8(s.slots)
	}
	return m.slot
}

func (s *shape) remember(conds []cond) []cond {
	for i, c := range conds {
		conds[i].index = s.slotOf(c.member)
	}
	return conds
}

// is and isNot are conditions on a member with an enumeration.
func (s *shape) is(name string, values ...string) cond {
	of := s.members[s.index(name)].shape
	if of.kind == shapeList {
		of = of.elem
	}
	return cond{member: name, bits: of.bits(values...)}
}

func (s *shape) isNot(name string, values ...string) cond {
	c := s.is(name, values...)
	c.not = true
	return c
}

// has is a condition on a member's bits; none is presence.
func has(name string, bits uint64) cond    { return cond{member: name, bits: bits} }
func hasNot(name string, bits uint64) cond { return cond{member: name, bits: bits, not: true} }
