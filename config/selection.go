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
		} else if was, ok := s.reader.loader.Unserved[id]; ok && !s.stays(id) && bytes.Equal(was, s.documents[id]) {
			s.back[id] = Mistake{File: StoredName(id), What: "cannot be served, because a backend cannot be asked for its subscriptions",
				Instead: "start the backend, or list its subscriptions in the registration"}
		}
	}
	s.settle()
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

// settle adds to the roster what fits. A tenant that has to go back to what another
// one claims by now has that one go back too, which nobody does twice.
func (s *selection) settle() {
	s.fit, s.good = make(map[string]*tenantFile, len(s.ids)), make(map[string][]byte, len(s.ids))
	// What is as it was, or goes back to that.
	for _, id := range s.ids {
		if _, back := s.back[id]; back {
			if read := s.earlierOf(id); read != nil {
				s.add(id, read)
			}
		} else if s.stays(id) {
			if m, refused := s.add(id, s.reads[id]); refused {
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
	by := make(map[any]string) // who claims what by a document that has changed
	for _, id := range append(changed, taking...) {
		m, refused := s.add(id, s.reads[id])
		if refused {
			s.goBack(id, m, by)
			continue
		}
		for claim := range s.reads[id].claims.all() {
			by[claim] = id
		}
	}
	// What is new.
	for _, id := range s.ids {
		if _, done := s.back[id]; done || s.before[id] != nil {
			continue
		}
		if m, refused := s.add(id, s.reads[id]); refused {
			s.back[id] = m
		}
	}
}

func (s *selection) add(id string, read *tenantFile) (Mistake, bool) {
	m, refused := s.refuses(id, read)
	if !refused {
		s.fit[id] = read
	}
	return m, refused
}

// goBack has a tenant go by its earlier document, and those who claim something of
// that by now, and so on.
func (s *selection) goBack(id string, m Mistake, by map[any]string) {
	s.back[id] = m
	for all := []string{id}; len(all) > 0; all = all[1:] {
		read := s.earlierOf(all[0])
		if read == nil {
			continue
		}
		var takers []string
		for claim := range read.claims.all() {
			taker, taken := by[claim]
			if _, back := s.back[taker]; taken && !back {
				s.drop(taker)
				s.back[taker] = Mistake{File: StoredName(taker)} // until it is known which
				takers = append(takers, taker)
			}
		}
		s.add(all[0], read)
		for _, taker := range takers {
			why, refused := s.refuses(taker, s.reads[taker])
			if !refused { // the earlier document could not be had back either
				s.fit[taker] = s.reads[taker]
				delete(s.back, taker)
				continue
			}
			s.back[taker] = why
			all = append(all, taker)
		}
	}
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
