package config

import "bytes"

// selection finds which documents of the store are served. Whoever has had an id,
// a key or a name keeps it: of two that claim the same, the one whose document was
// good before is served as it was, and the other, were it first by id, is left
// out. Otherwise the first by id has it.
type selection struct {
	reader    *reader
	to        *roster
	trust     bool
	ids       []string          // sorted
	documents map[string][]byte // by id, with others
	before    map[string][]byte // basis.good

	reads   map[string]*tenantFile // of documents
	earlier map[string]*tenantFile // of before, as far as they were asked for
	had     map[any]string         // whose last good document claims what, for takes
	// back are those that go by their earlier document, and why.
	back  map[string]Mistake
	clash *reader // has no mistakes between two uses

	fit  map[string]*tenantFile
	good map[string][]byte
	out  []LeftOut
}

// maxChoices bounds how often everything is chosen again.
const maxChoices = 8

// choose sets fit, good and out.
func (s *selection) choose() {
	all := make([]*tenantFile, len(s.ids))
	inParallel(len(s.ids), func(i int) {
		all[i] = s.reader.storedTenant(s.ids[i], s.documents[s.ids[i]], s.to, s.trust)
	})
	s.reads, s.earlier, s.back = make(map[string]*tenantFile, len(all)), make(map[string]*tenantFile), make(map[string]Mistake)
	for i, id := range s.ids {
		s.reads[id] = all[i]
		s.reader.follow(all[i])
		if m, bad := ownMistake(id, all[i]); bad {
			s.back[id] = m
		}
	}
	for round := 1; !s.chosen(round == maxChoices); round++ {
	}
	for _, id := range s.ids {
		read := s.fit[id]
		if m, back := s.back[id]; back {
			s.out = append(s.out, LeftOut{ID: id, Mistake: m, Earlier: read != nil})
			if before, ok := s.before[id]; ok {
				s.good[id] = before
			}
		} else {
			s.good[id] = s.documents[id]
		}
		if read != nil {
			s.reader.follow(read)
			s.to.kept.keep(StoredName(id), read)
		}
	}
}

// chosen adds to the roster what fits, and reports whether that holds. Where a
// tenant has to go back to what another one claims by now it takes everything
// back, so that the next time this tenant has it; unless it is the last time.
func (s *selection) chosen(last bool) bool {
	s.fit, s.good = make(map[string]*tenantFile, len(s.ids)), make(map[string][]byte, len(s.ids))
	var added []string
	add := func(id string, read *tenantFile) (Mistake, bool) {
		m, refused := s.refuses(id, read)
		if !refused {
			s.fit[id] = read
			added = append(added, id)
		}
		return m, refused
	}
	// What is as it was, or goes back to that.
	for _, id := range s.ids {
		if _, back := s.back[id]; back {
			if read := s.earlierOf(id); read != nil {
				add(id, read)
			}
		} else if s.stays(id) {
			if m, refused := add(id, s.reads[id]); refused {
				s.back[id] = m
			}
		}
	}
	// What has changed: first what claims nothing that another one has had, so that
	// nobody's mistake has a tenant go back to keys that it has given up.
	var changed, taking []string
	for _, id := range s.ids {
		switch _, done := s.back[id]; {
		case done || s.stays(id) || s.before[id] == nil:
		case s.takes(id):
			taking = append(taking, id)
		default:
			changed = append(changed, id)
		}
	}
	for _, id := range append(changed, taking...) {
		m, refused := add(id, s.reads[id])
		if !refused {
			continue
		}
		s.back[id] = m
		read := s.earlierOf(id)
		if read == nil {
			continue
		}
		if _, refused := add(id, read); refused && !last {
			for len(added) > 0 {
				id := added[len(added)-1]
				added = added[:len(added)-1]
				s.to.list.remove(memberOf(id, s.fit[id]), &s.fit[id].claims)
			}
			return false
		}
	}
	// What is new.
	for _, id := range s.ids {
		if _, done := s.back[id]; done || s.before[id] != nil {
			continue
		}
		if m, refused := add(id, s.reads[id]); refused {
			s.back[id] = m
		}
	}
	return true
}

// takes reports whether a document claims what the last good one of another
// tenant does, whose document has changed too.
func (s *selection) takes(id string) bool {
	if s.had == nil {
		s.had = make(map[any]string)
		for _, other := range s.ids {
			if s.stays(other) {
				continue
			}
			if read := s.earlierOf(other); read != nil {
				for claim := range read.claims.all() {
					s.had[claim] = other
				}
			}
		}
	}
	for claim := range s.reads[id].claims.all() {
		if other, had := s.had[claim]; had && other != id {
			return true
		}
	}
	return false
}

// stays reports whether the document is the last good one.
func (s *selection) stays(id string) bool {
	before, ok := s.before[id]
	return ok && bytes.Equal(before, s.documents[id])
}

// earlierOf returns what the tenant's last good document is read as, or nil where
// there is none or it is good no more.
func (s *selection) earlierOf(id string) *tenantFile {
	before, ok := s.before[id]
	if !ok {
		return nil
	}
	if _, known := s.earlier[id]; !known {
		read := s.reader.storedTenant(id, before, s.to, s.trust)
		if _, bad := ownMistake(id, read); bad {
			read = nil
		}
		s.earlier[id] = read
	}
	return s.earlier[id]
}

// ownMistake returns why a document cannot be a tenant, whatever the others are.
func ownMistake(id string, read *tenantFile) (Mistake, bool) {
	switch {
	case len(read.mistakes) > 0:
		return read.mistakes[0], true
	case read.incomplete || read.at.node == nil:
		return incompleteIn(id), true
	}
	return Mistake{}, false
}

// drop takes back that a tenant is one of those that fit.
func (s *selection) drop(id string) {
	if read := s.fit[id]; read != nil {
		s.to.list.remove(memberOf(id, read), &read.claims)
		delete(s.fit, id)
	}
}

// refuses returns why a document cannot be one of the tenants. One that can be
// is one of them from then on.
func (s *selection) refuses(id string, read *tenantFile) (Mistake, bool) {
	m := memberOf(id, read)
	s.to.list.add(s.clash, m, &read.claims)
	if len(s.clash.mistakes) == 0 {
		return Mistake{}, false
	}
	s.to.list.remove(m, &read.claims)
	first := s.clash.mistakes[0]
	s.clash.mistakes = nil
	clear(s.clash.known)
	return first, true
}
